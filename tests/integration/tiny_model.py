"""A language model with random weights, small enough to be made in a test: for transformers, and as a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WINDOW = 2_048  # tokens
HIDDEN, LAYERS, HEADS, KEY_VALUE_HEADS, FEED_FORWARD = 64, 2, 4, 2, 128
BEGIN, END = "<s>", "</s>"


def tiny_tokenizer(texts: list[str]) -> Any:
    """Byte pairs of these texts, as GPT-2 has them; every text begins with a token of its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=[BEGIN, END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(f"{BEGIN} $A", special_tokens=[(BEGIN, 0)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=BEGIN, eos_token=END)


def tiny_model(vocabulary: int) -> Any:
    """Weights so large that its tokens are far from equally likely."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        intermediate_size=FEED_FORWARD,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_VALUE_HEADS,
        max_position_embeddings=WINDOW,
        initializer_range=0.2,
        tie_word_embeddings=False,
    )
    model = Qwen2ForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.2)
    return model


def write_gguf(model: Any, tokenizer: Any, path: Path) -> None:
    """The same weights and tokens in a GGUF file, with 32 bits a weight."""
    import json

    from gguf import GGUFWriter, TokenType

    writer = GGUFWriter(path, "qwen2")
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_VALUE_HEADS)
    writer.add_layer_norm_rms_eps(model.config.rms_norm_eps)
    writer.add_rope_freq_base(model.config.rope_parameters["rope_theta"])
    saved = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(saved["vocab"], key=saved["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL if token in {BEGIN, END} else TokenType.NORMAL for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in saved["merges"]])
    writer.add_bos_token_id(tokens.index(BEGIN))
    writer.add_eos_token_id(tokens.index(END))
    writer.add_add_bos_token(True)
    for name, weights in model.state_dict().items():
        writer.add_tensor(_gguf_name(name), weights.float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(name: str) -> str:
    for theirs, ours in (
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("model.layers", "blk"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.", "attn_"),
        ("mlp.", "ffn_"),
        ("_proj", ""),
    ):
        name = name.replace(theirs, ours)
    return name
