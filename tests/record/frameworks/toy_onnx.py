"""A small model in the place of the one that Chroma's default function downloads: it counts the words of the corpus.

ONNX is written as the protocol buffers that it is: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto has the
numbers of the fields.
"""

import re
import struct
from pathlib import Path
from typing import Any

from tests.recipes.apps.toy_corpus import CHUNKS

DIMENSIONS = 384
FLOAT, INT64 = 1, 7
FILES = ("config.json", "special_tokens_map.json", "tokenizer_config.json", "vocab.txt")


def installed(folder: Path) -> None:
    """Write the files of the model into a folder."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_text("{}")
    words = sorted({word for _, text in CHUNKS for word in re.findall(r"\w+", text.lower())})
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    # A word is a dimension; what is no word of the corpus is none.
    rows = [[float(at == number and number > 1) for at in range(DIMENSIONS)] for number in range(len(vocabulary))]
    (folder / "model.onnx").write_bytes(_model(rows))


def _model(rows: list[list[float]]) -> bytes:
    """Return a model that looks up a row for each token."""
    data = b"".join(struct.pack(f"<{DIMENSIONS}f", *row) for row in rows)
    table = _message((1, len(rows)), (1, DIMENSIONS), (2, FLOAT), (8, "table"), (9, data))
    gather = _message((1, "table"), (1, "input_ids"), (2, "last_hidden_state"), (4, "Gather"))
    inputs = [(11, _value(name, INT64, 2)) for name in ("input_ids", "attention_mask", "token_type_ids")]
    output = _value("last_hidden_state", FLOAT, 3)
    graph = _message((1, gather), (2, "toy"), (5, table), *inputs, (12, output))
    return _message((1, 8), (7, graph), (8, _message((2, 13))))


def _value(name: str, kind: int, dimensions: int) -> bytes:
    shape = _message(*((1, _message((2, f"{name}_{at}"))) for at in range(dimensions)))
    return _message((1, name), (2, _message((1, _message((1, kind), (2, shape))))))


def _message(*fields: tuple[int, Any]) -> bytes:
    """Return the fields of a message: numbers as variable-length integers, the rest with its length before it."""
    encoded = b""
    for number, value in fields:
        if isinstance(value, int):
            encoded += _varint(number << 3) + _varint(value)
        else:
            content = value.encode() if isinstance(value, str) else value
            encoded += _varint(number << 3 | 2) + _varint(len(content)) + content
    return encoded


def _varint(value: int) -> bytes:
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])
