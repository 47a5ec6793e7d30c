"""The addition model under transformers' own Seq2SeqTrainer, instead of `headcount train`.

    python examples/seq2seq_trainer.py --output runs/seq2seq-trainer
    python examples/seq2seq_trainer.py --output runs/short --steps 20 --train 500

Data, tokenizer, model and collator are headcount's; the loop and `predict_with_generate` are transformers'.
"""

import argparse
import tempfile

from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

import headcount
from headcount.data_builders.collators import make_collator
from headcount.data_builders.tokenization import make_tokenizer


def main(arguments: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    set_seed(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        task = headcount.TASKS["addition"]
        corpus = task.options(sampling="carry_balanced", answer_order="reversed", train=options.train)
        headcount.write_folder(task, corpus, f"{folder}/data")
        data = {split: headcount.load_folder(f"{folder}/data", split=split) for split in ("train", "test")}

        tokenizer = make_tokenizer(task)
        config = headcount.HeadcountConfig(vocab_size=len(tokenizer), max_position_embeddings=16)
        model = headcount.HeadcountForConditionalGeneration(config)

        def exact_match(prediction) -> dict[str, float]:
            """Free-running: what `generate()` wrote, against the labels; both are padded, with other values."""
            generated, labels = prediction
            written = tokenizer.batch_decode(generated.clip(min=0), skip_special_tokens=True)
            wanted = tokenizer.batch_decode(labels.clip(min=0), skip_special_tokens=True)
            return {"exact_match": sum(a == b for a, b in zip(written, wanted, strict=True)) / len(wanted)}

        trainer = Seq2SeqTrainer(
            model=model,
            args=Seq2SeqTrainingArguments(
                output_dir=options.output,
                max_steps=options.steps,
                per_device_train_batch_size=64,
                per_device_eval_batch_size=500,
                learning_rate=1e-3,
                warmup_steps=options.steps // 10,
                adam_beta2=0.98,
                predict_with_generate=True,
                generation_max_length=8,
                remove_unused_columns=False,
                dataloader_pin_memory=False,
                logging_steps=100,
                save_strategy="no",
                report_to="none",
                seed=options.seed,
            ),
            data_collator=make_collator(task, model=model),
            train_dataset=data["train"],
            eval_dataset=data["test"],
            compute_metrics=exact_match,
        )
        trainer.train()
        metrics = trainer.evaluate()
    trainer.save_model(options.output)
    tokenizer.save_pretrained(options.output)
    print(f"free-running exact match on {len(data['test'])} problems: {metrics['eval_exact_match']:.4f}")
    return metrics


if __name__ == "__main__":
    main()
