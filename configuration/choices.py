"""Every name that a config field may take, with the sentence that `headcount ls` prints for it.

The classes behind the names live in `modeling/`, in dicts with the same keys; a test keeps the two sides equal.
This file imports nothing, so that the command line can list the names without loading torch.
"""

ARCHITECTURES = {
    "encoder-decoder": "reads the input with an encoder, writes the output with a decoder and cross-attention",
    "decoder": "one causal stack that continues its prompt",
    "encoder": "one stack that reads the whole input, for classification",
}

POSITION_ENCODINGS = {
    "none": "no position information; order is visible only through a causal mask",
    "sinusoidal": "fixed sines and cosines added to the embeddings (Vaswani et al. 2017)",
    "learned": "a trained vector per position added to the embeddings (BERT, GPT-2)",
    "rotary": "queries and keys rotated by their position (Su et al. 2021)",
    "alibi": "a penalty linear in the distance, one slope per head (Press et al. 2022)",
    "alibi_directional": "ALiBi for encoders: even heads look back only, odd heads look ahead only",
    "t5_bias": "a trained bias per head and logarithmic distance bucket (Raffel et al. 2020)",
    "relative_bias": "a trained bias per head and clipped difference of positions",
    "relative_key": "a trained key vector per clipped difference (Shaw et al. 2018)",
    "fire": "a small network of the normalised log distance (Li et al. 2024)",
    "kerple": "a trained logarithmic penalty per head (Chi et al. 2022)",
}

POSITION_SCHEMES = {
    "sequential": "0, 1, 2, ... along the sequence, padding left out",
    "randomized": "an ordered random subset of 0..max_position_embeddings-1 while training (Ruoss et al. 2023)",
    "coupled": "digits of equal significance share an id (Cho et al. 2024); built-in alignment",
    "abacus": "every digit gets its place within its own number (McLeish et al. 2024); built-in alignment",
    "nested": "a bracket and the one that closes it get neighbouring ids; built-in stack",
}

POOLERS = {
    "mean": "average over the tokens",
    "max": "largest value of each feature over the tokens",
    "min": "smallest value of each feature over the tokens",
    "first": "the first token",
    "last": "the last token",
    "attention": "average weighted by a trained score per token",
    "violation": "minimum, minimum and mean neighbour difference, first and last, in a linear layer; hand-made",
}

ATTENTION_FUNCTIONS = {
    "eager": "written out step by step; returns the attention maps",
    "sdpa": "torch's fused kernel; the same result, faster",
}

NORMALIZERS = {
    "softmax": "scores as they are",
    "log_n": "scores times log(number of visible keys): keeps attention sharp at long lengths",
    "temperature": "scores times a trained factor per head",
    "sparsemax": "the nearest distribution to the scores, exactly zero for most keys (Martins & Astudillo 2016)",
}

NORMS = {
    "layer": "mean 0 and variance 1 over the features of a token, with a trained gain and bias (Ba et al. 2016)",
    "rms": "mean square 1 over the features of a token, with a trained gain (Zhang & Sennrich 2019)",
    "none": "no norm: sublayers read the plain sum of what was written; hard to train, easy to set by hand",
}

FEED_FORWARDS = {
    "plain": "up, activation, down (Vaswani et al. 2017)",
    "gated": "up, times an activation of a second matrix, down (Shazeer 2020): SwiGLU with silu, GEGLU with gelu",
}

EMBEDDINGS = {
    "table": "one trained vector per token",
    "ordinal": "numbers as cumulative sums of trained steps, so that order is visible; hand-made",
}
