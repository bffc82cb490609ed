"""Where words end: between blanks in most scripts, anywhere in those that write none, and before a raised mark."""

import re

# Han, kana and bopomofo, Yi; Thai and Lao, Burmese, Khmer, Tai, Balinese and Javanese.
UNSPACED = (
    r"⺀-⿟々-〇〡-〩〸-〼\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\ua4cf\uf900-\ufaff\uff66-\uff9f"
    r"\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
    r"\u0e00-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaadf\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9df"
)
# Marks after a word, which read as digits or letters in normal form: superscripts, digits in circles, ™ and ℠.
RAISED = "¹²³⁰⁴-⁹ªº™℠①-⑳⓪⓫-⓿❶-➓"
_AFFIXES = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"

has_raised = re.compile(f"[{RAISED}]").search
is_no_part_of_words = re.compile(f"[{UNSPACED}{RAISED}]").match  # a character beside which any word may end
# Scripts that write no blanks around words, or, as Hebrew, Arabic and Korean, affixes without a blank.
is_written_together = re.compile(f"[{UNSPACED}{_AFFIXES}]").search
