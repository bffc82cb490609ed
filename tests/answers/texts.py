"""Made-up prose for tests: sentences of different words, in documents that share few of them."""

import random

from hypothesis import strategies as st

# Letters of several scripts, a few marks, and what is between words, in any order.
WORDS = ["a", "b", "Ba", "É", "日", ".", ", ", " ", "  ", "’", "\u0301", "ก", "\u0e48", "\u0e38"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=14).map("".join)
SYLLABLES = ("ka", "to", "mi", "ren", "sol", "vi", "an", "der", "lu", "pe", "os", "tra", "ne", "qui", "bel", "go")


def sentences(count: int, seed: int = 1) -> list[str]:
    """Return so many sentences of eight to thirty words, of which a few are frequent."""
    chance = random.Random(seed)
    frequent = ["the", "of", "and", "to", "in", "is", "a", "that"]
    rare = ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(4_000)]
    made = []
    for _ in range(count):
        words = [chance.choice(frequent if chance.random() < 0.4 else rare) for _ in range(chance.randint(8, 30))]
        made.append(f"{' '.join(words).capitalize()}.")
    return made


def chunks(text: str, size: int) -> list[str]:
    """Cut a text into pieces of so many characters, wherever that is."""
    return [text[start : start + size] for start in range(0, len(text), size)]
