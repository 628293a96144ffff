"""Train a tiny language model with a Freight metric as the reward: TRL's GRPO, or RLOO.

    python examples/grpo_reward.py [--steps 60] [--trainer grpo|rloo] [--encoder embedded]

The model (a Llama of one layer with random weights) and its tokenizer (a few dozen words) are made
on the spot: nothing is downloaded, and a CPU is enough. It is to say in English what the prompt
says in German. Prints the mean reward as it rises, and the answers after training.
"""

import argparse
import tempfile
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, PrinterCallback
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

import freight
from freight.interop.rewards import reward

PAIRS = {
    "der hund schläft": "the dog sleeps",
    "eine katze trinkt": "a cat drinks",
    "das kind singt": "the child sings",
    "ein vogel fliegt": "a bird flies",
}
TRAINERS: dict[str, tuple[Any, Any]] = {
    "grpo": (GRPOConfig, GRPOTrainer),
    "rloo": (RLOOConfig, RLOOTrainer),
}
SHOWN = 6


def main() -> None:
    """Train, and print the rewards and the answers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--trainer", choices=TRAINERS, default="grpo")
    parser.add_argument("--encoder", default="embedded")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer, arguments.seed)
    metric = freight.load("freight", encoder=freight.encoder(arguments.encoder))
    rewards = train(model, tokenizer, metric, arguments.trainer, arguments.steps, arguments.seed)
    size = max(1, len(rewards) // SHOWN)
    for start in range(0, len(rewards), size):
        part = rewards[start : start + size]
        print(f"steps {start + 1:3}-{start + len(part):3}  mean reward {sum(part) / len(part):.3f}")
    for prompt in PAIRS:
        print(f"{prompt} -> {answer(model, tokenizer, prompt)}")


def tiny_tokenizer() -> Any:
    """One token per word of the pairs, and three special ones."""
    words = sorted({word for pair in PAIRS.items() for text in pair for word in text.split()})
    vocabulary = {word: k for k, word in enumerate(["<pad>", "<eos>", "<unk>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    kind: Any = PreTrainedTokenizerFast
    return kind(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def tiny_model(tokenizer: Any, seed: int) -> Any:
    """A causal language model with some ten thousand random weights."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    kind: Any = LlamaForCausalLM
    return kind(config)


def train(
    model: Any,
    tokenizer: Any,
    metric: Any,
    trainer: str,
    steps: int,
    seed: int,
) -> list[float]:
    """The mean reward of every step."""
    settings, kind = TRAINERS[trainer]
    score = reward(metric, reference="english", unscored=0.0)
    rows = [{"prompt": german, "english": english} for german, english in PAIRS.items()]
    with tempfile.TemporaryDirectory() as folder:
        config = settings(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=64,
            num_generations=16,
            max_completion_length=4,
            learning_rate=1e-2,
            beta=0.0,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            seed=seed,
        )
        instance = kind(
            model=model,
            reward_funcs=score,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
        )
        instance.remove_callback(PrinterCallback)
        instance.train()
    name = f"rewards/{score.__name__}/mean"
    return [entry[name] for entry in instance.state.log_history if name in entry]


def answer(model: Any, tokenizer: Any, prompt: str) -> str:
    """The answer of the model, decoded greedily."""
    inputs = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
    with torch.inference_mode():
        output = model.generate(**inputs, max_new_tokens=4, do_sample=False)
    words = output[0, inputs["input_ids"].shape[1] :]
    return str(tokenizer.decode(words, skip_special_tokens=True))


if __name__ == "__main__":
    main()
