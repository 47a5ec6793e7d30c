"""The models under transformers' own trainers."""

import numpy as np
import pytest
import torch
from small_models import MODEL_CLASSES, make_inputs, make_model
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, Trainer, TrainingArguments


def rows(architecture: str) -> list[dict]:
    inputs = make_inputs(architecture, batch=16, seed=3)
    if architecture == "encoder-decoder":
        inputs["labels"][:, -1] = 2  # eos, so that generation learns to stop
    return [{name: values[i] for name, values in inputs.items()} for i in range(16)]


def options(folder) -> dict:
    return {
        "output_dir": str(folder),
        "per_device_train_batch_size": 8,
        "learning_rate": 3e-3,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
        "seed": 0,
    }


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_trainer_learns_a_few_examples_by_heart(architecture, tmp_path):
    model = make_model(architecture, attention="sdpa")
    arguments = TrainingArguments(**options(tmp_path), num_train_epochs=40, gradient_accumulation_steps=2)
    trainer = Trainer(model=model, args=arguments, train_dataset=rows(architecture), eval_dataset=rows(architecture))
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < 0.3 * before


def test_seq2seq_trainer_generates_what_it_learned(tmp_path):
    model, data = make_model(attention="sdpa"), rows("encoder-decoder")
    arguments = Seq2SeqTrainingArguments(**options(tmp_path), num_train_epochs=60, predict_with_generate=True)
    trainer = Seq2SeqTrainer(model=model, args=arguments, train_dataset=data, eval_dataset=data)
    trainer.train()
    prediction = trainer.predict(data)
    assert (prediction.predictions[:, 0] == 1).all()  # the start token, then the answer
    exact = (prediction.predictions[:, 1:7] == prediction.label_ids[:, :6]).all(-1)
    assert exact.mean() == 1.0
    assert np.array_equal(prediction.label_ids[:, :6], torch.stack([row["labels"] for row in data]).numpy())
