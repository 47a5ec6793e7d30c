"""What a user would take instead for addition: the same size (2+2 layers, 4 heads, d=128, ff=512) out of other parts.

Every model is called as `model(input_ids, labels)` and gives the loss and the logits (B, T, vocabulary). ReLU, no
dropout, and otherwise the defaults of its library, initialization included.
"""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import BartConfig, BartForConditionalGeneration, T5Config, T5ForConditionalGeneration

from headcount.data_builders.addition.task import VOCABULARY
from headcount.data_builders.vocabulary import BOS, EOS, PAD


LAYERS, HEADS, WIDTH, FEED, LENGTH = 2, 4, 128, 512, 16
TOKENS = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}


def shifted(labels: Tensor) -> Tensor:
    return torch.cat((torch.full_like(labels[:, :1], BOS), labels[:, :-1]), dim=1)


class Bart(nn.Module):
    def __init__(self):
        super().__init__()
        config = BartConfig(
            vocab_size=VOCABULARY.size,
            max_position_embeddings=LENGTH,
            d_model=WIDTH,
            dropout=0.0,
            encoder_layers=LAYERS,
            decoder_layers=LAYERS,
            encoder_attention_heads=HEADS,
            decoder_attention_heads=HEADS,
            encoder_ffn_dim=FEED,
            decoder_ffn_dim=FEED,
            activation_function="relu",
            forced_eos_token_id=None,
            **TOKENS,
        )
        self.model = BartForConditionalGeneration(config)

    def forward(self, input_ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        output = self.model(input_ids=input_ids, decoder_input_ids=shifted(labels), labels=labels, use_cache=False)
        return output.loss, output.logits

    def write(self, input_ids: Tensor, places: int) -> Tensor:
        return generate(self.model, input_ids, places)


class T5(nn.Module):
    def __init__(self):
        super().__init__()
        config = T5Config(
            vocab_size=VOCABULARY.size,
            d_model=WIDTH,
            d_kv=WIDTH // HEADS,
            d_ff=FEED,
            num_layers=LAYERS,
            num_decoder_layers=LAYERS,
            num_heads=HEADS,
            dropout_rate=0.0,
            **TOKENS,
        )
        self.model = T5ForConditionalGeneration(config)

    forward = Bart.forward
    write = Bart.write


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with tables for tokens and positions."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY.size, WIDTH), nn.Embedding(LENGTH, WIDTH)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="enable_nested_tensor is True")  # it cannot be switched off
            self.model = nn.Transformer(
                WIDTH, HEADS, LAYERS, LAYERS, FEED, dropout=0.0, batch_first=True, norm_first=True
            )
        self.read_out = nn.Linear(WIDTH, VOCABULARY.size)

    def embed(self, ids: Tensor) -> Tensor:
        return self.tokens(ids) + self.positions.weight[: ids.shape[1]]

    def forward(self, input_ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        mask = nn.Transformer.generate_square_subsequent_mask(labels.shape[1])
        states = self.model(self.embed(input_ids), self.embed(shifted(labels)), tgt_mask=mask, tgt_is_causal=True)
        logits = self.read_out(states)
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


class XTransformers(nn.Module):
    """x-transformers' XTransformer, with its fused attention."""

    def __init__(self):
        super().__init__()
        from x_transformers import XTransformer

        def side(name: str) -> dict:
            options = {"num_tokens": VOCABULARY.size, "depth": LAYERS, "heads": HEADS, "max_seq_len": LENGTH}
            options |= {"attn_dim_head": WIDTH // HEADS, "attn_flash": True, "ff_custom_activation": nn.ReLU()}
            return {f"{name}_{option}": value for option, value in options.items()}

        self.model = XTransformer(dim=WIDTH, ignore_index=-100, pad_value=PAD, **side("enc"), **side("dec"))

    def forward(self, input_ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        states = self.model.encoder(input_ids, return_embeddings=True)
        logits = self.model.decoder.net(shifted(labels), context=states)
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits

    def write(self, input_ids: Tensor, places: int) -> Tensor:
        start = torch.full((len(input_ids), 1), BOS)
        return self.model.generate(input_ids, start, places, temperature=0.0, cache_kv=True)


@torch.inference_mode()
def generate(model, input_ids: Tensor, places: int) -> Tensor:
    """Greedy, with cache, always `places` tokens: random weights would end anywhere."""
    return model.generate(input_ids, max_new_tokens=places, min_new_tokens=places, do_sample=False, num_beams=1)


ADDERS: dict[str, Callable[[], nn.Module]] = {
    "BART": Bart,
    "T5": T5,
    "torch.nn.Transformer": TorchTransformer,
    "x-transformers": XTransformers,
}
PACKAGES = {"x-transformers": "x-transformers"}  # of those that are no dependency of headcount


def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: dict[str, Tensor]) -> Tensor:
    """The raw loop that people write."""
    loss, _ = model(batch["input_ids"], batch["labels"])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss


def make_optimizer(model: nn.Module, learning_rate: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
