"""What the applications search: chunks of documents, and an embedding without a model or a network."""

import math
import re
import zlib

CHUNKS = [
    ("refund_policy", "A refund is paid within 14 days. Ask for your money back in the billing settings."),
    ("refund_policy", "Annual plans: the refund covers the months that are left."),
    ("sso_setup", "Single sign-on needs the enterprise plan. Upload the metadata of your identity provider."),
    ("sso_setup", "If sign-on fails, check the clock of the identity provider."),
    ("rate_limits", "The API allows 100 requests per minute. More requests are answered with status 429."),
    ("pricing", "The team plan costs 10 euros for each seat and month."),
]
DIMENSIONS = 512


def embed(text: str) -> list[float]:
    """Return a vector of length 1 that counts the words of a text."""
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w{3,}", text.lower()):
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    length = math.sqrt(sum(value * value for value in vector)) or 1
    return [value / length for value in vector]
