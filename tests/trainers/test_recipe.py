import pytest
import yaml

from headcount.trainers.model_building import make_config, make_model
from headcount.trainers.recipe import RECIPE_FOLDER, TrainingOptions, load_recipe, recipe_names
from headcount.trainers.training_data import make_corpus


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_complete(name):
    recipe = load_recipe(name)
    assert recipe.name == name and recipe.description
    assert make_config(recipe).architecture in ("encoder-decoder", "decoder", "encoder")
    assert make_corpus(recipe).sizes()


def test_the_course_models_are_the_courses():
    addition = make_model(load_recipe("addition"))
    assert len(addition.list_heads()) == 24 and addition.config.hidden_size == 128
    assert addition.config.intermediate_size == 512 and 0.9e6 < addition.num_parameters() < 1e6
    sortedness = make_model(load_recipe("sortedness"))
    assert len(sortedness.list_heads()) == 16 and sortedness.config.pooling_type == "max"


def test_extending_recipes_name_only_what_differs():
    base, reversed_ = load_recipe("addition"), load_recipe("addition-reversed")
    assert reversed_.data == {**base.data, "answer_order": "reversed"} and reversed_.model == base.model
    assert reversed_.training == base.training


def test_a_resolved_recipe_is_a_recipe(tmp_path):
    recipe = load_recipe("sortedness", ["training.seed=7", "steps=50", "model.dropout=0.1", "learning_rate=1e-3"])
    path = tmp_path / "recipe.yaml"
    path.write_text(recipe.to_yaml())
    again = load_recipe(str(path))
    assert again == recipe
    assert again.training.seed == 7 and again.training.steps == 50 and again.training.learning_rate == 0.001
    assert set(yaml.safe_load(path.read_text())["training"]) == {*TrainingOptions.__dataclass_fields__, "curriculum"}


def test_asking_for_steps_replaces_epochs_and_the_other_way_round():
    assert load_recipe("addition", ["steps=5"]).training.epochs is None
    assert load_recipe("addition", ["steps=5", "epochs=2"]).training.steps is None


@pytest.mark.parametrize(
    "name, overrides, message",
    [
        ("additon", [], "there is no recipe 'additon'.*Did you mean 'addition'"),
        ("addition", ["batch_size"], "has no '='"),
        ("addition", ["batchsize=3"], "is not a key of the recipe.*Did you mean 'batch_size'"),
        ("addition", ["trainig.steps=3"], "names no section"),
        ("addition", ["seed=3"], "is in data and training"),
        ("addition", ["training.optimizer=adamv"], "training.optimizer='adamv'.*Did you mean 'adamw'"),
        ("addition", ["training.batch_size=0"], "training.batch_size=0 is not allowed"),
        ("addition", ["model.hiden_size=64"], "model.hiden_size is not a key.*Did you mean 'hidden_size'"),
        ("addition", ["curriculum=true"], "'curriculum' is not a key of the recipe"),
        ("addition", ["fresh_data=true"], "epochs means nothing with fresh_data"),
        ("sortedness", ["muon_per_head=true"], "--set muon_per_head has no effect with training.optimizer='adamw'"),
        ("addition", ["nine_shares=[0.5]"], "nine_shares has no effect with fresh_data=false"),
        (
            "addition-long",
            ["nine_shares=[2]"],
            "nine_shares=.* is not allowed; expected a list of numbers from 0 to 1",
        ),
        ("sortedness", ["nine_shares=[0.5]"], "'nine_shares' is not a key of the recipe"),
        ("addition", ["gradient_accumulation=3"], "expected a divisor of batch_size=64"),
        ("missing.yaml", [], r"there is no file missing\.yaml"),
    ],
)
def test_mistakes_are_named(name, overrides, message):
    with pytest.raises(ValueError, match=message):
        load_recipe(name, overrides)


def test_what_follows_from_the_task_cannot_be_set():
    with pytest.raises(ValueError, match=r"model\.vocab_size follows from the task"):
        make_config(load_recipe("addition", ["model.vocab_size=99"]))
    with pytest.raises(ValueError, match="is not allowed for sortedness; expected encoder"):
        make_config(load_recipe("sortedness", ["model.architecture=decoder"]))


def test_broken_files_are_named(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text("task: [addition")
    with pytest.raises(ValueError, match="is not valid YAML"):
        load_recipe(str(path))
    path.write_text("task: addition\nextends: addition-tiny\nmodle: {}\n")
    with pytest.raises(ValueError, match=r"'modle' is not a key of a recipe\. Did you mean 'model'"):
        load_recipe(str(path))
    assert RECIPE_FOLDER.name == "recipes"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("extends: own.yaml", "extends itself"),
        ("extends: other.yaml", "extends itself"),
        ("extends: [addition]", "has extends="),
        ("task: 5", "has task=5; expected a text"),
        ("task: addition\ntraining: 5", "has training=5; expected names with values"),
        ("task: addition\ndata: [1]", r"has data=\[1\]; expected names with values"),
        ("task: addition\nmodel: text", "has model='text'; expected names with values"),
        ("task: addition\nmodel: {1: 2}", "has model="),
        ("task: addition\ntraining: {steps: 1, betas: [a, b]}", "training.betas="),
        ("task: addition\ntraining: {steps: 1, betas: 5}", "training.betas=5"),
        ("task: addition\ntraining: {steps: 1, betas: [1, 2, 3]}", "training.betas="),
        ("task: addition\ntraining: {steps: 1, seed: 99999999999999999999}", "training.seed="),
        ("task: addition\ntraining: {steps: 1, batch_size: 100000000000}", "training.batch_size="),
        ("task: addition\nmodel: {id2label: 8}", "model.id2label is not a key"),
        ("task: addition\nmodel: {dtype: nonsense}", "model.dtype is not a key"),
    ],
)
def test_broken_recipes_are_one_sentence(text, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text("extends: own.yaml")
    with pytest.raises(ValueError, match=said):
        load_recipe("own.yaml")


@pytest.mark.parametrize(
    "setting", ["model.id2label=8", "training.steps=" + "9" * 5000, "training.betas=[a,b]", "training.steps=*a"]
)
def test_settings_that_do_not_fit_are_one_sentence(setting):
    with pytest.raises(ValueError, match=r"expected|is not a key") as error:
        load_recipe("addition", [setting])
    assert "4300" not in str(error.value) and len(str(error.value)) < 300
