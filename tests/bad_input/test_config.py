"""Configurations that cannot be read, each reported by file and line."""

from pathlib import Path

import pytest

from ragcontract.contract.config import config_record
from ragcontract.contract.limits import limit_keys, metrics_at
from ragcontract.registry import BUILT_IN
from tests.bad_input.test_rows import RANK, errors, refused
from tests.builders import good_workspace

FRACTION = "expected a fraction from 0 to 1, as 0.10"
DROP = f'{FRACTION} or a percentage of the baseline, as "10%"'
CUTOFFS = f"{RANK} or a list of up to 10 of them, as [1, 5, 10]"
KEYS = ", ".join(config_record(BUILT_IN, limit_keys(BUILT_IN, [5])).__struct_fields__)
HALF = r"contains half of a surrogate pair (\ud800 to \udfff), which is not a character; write both halves"
NAMES = ("mrr", "recall", "precision", "hitrate", "ndcg", "map")
OF_ROWS = [  # limits on changes of metrics without a cut-off
    f"{metric.key}_{'drop' if metric.better == 'higher' else 'rise'}_gt"
    for metric in metrics_at(BUILT_IN, [5])
    if metric.k is None
]
OF_RANKS = [f"{name}{cutoff}_drop_gt" for name in NAMES for cutoff in ("", "_at_5")]
OF_LABELS = [f"label_{name}_drop_gt" for name in ("precision", "recall", "f1")]
DROPS = ", ".join([*OF_RANKS, *OF_ROWS, *OF_LABELS, "mode", "alpha"])

CONFIGS: dict[str, tuple[str, list[str]]] = {
    "an empty file": ("", ["1: is empty; write at least `k: 5`, or remove the file to use the defaults"]),
    "only blank lines": (
        "\n \n",
        ["1: is empty; write at least `k: 5`, or remove the file to use the defaults"],
    ),
    "a list": ("\n- k\n", ["2: is not a mapping of keys to values, as in `k: 5`"]),
    "a scalar": ("k5", ["1: is not a mapping of keys to values, as in `k: 5`"]),
    "k of 0": ("k: 0", [f"1: k: {CUTOFFS}, found 0"]),
    "negative k": ("\nk: -5", [f"2: k: {CUTOFFS}, found -5"]),
    "k with a point": ("k: 5.0", [f"1: k: {CUTOFFS}, found 5.0"]),
    "k in quotes": ("k: '5'", [f'1: k: {CUTOFFS}, found "5" (text); leave the quotes out']),
    "k in hexadecimal": ("k: 0x10", [f'1: k: {CUTOFFS}, found "0x10" (text)']),
    "no k": ("k: []", [f"1: k: {CUTOFFS}, found []"]),
    "too many ks": (f"k: {[*range(1, 12)]}", [f"1: k: {CUTOFFS}, found [1, 2, 3, …]"]),
    "ks that are none": ("k: [1, 0, x]", [f"1: k[1]: {RANK}, found 0", f'1: k[2]: {RANK}, found "x" (text)']),
    "a gain that is none": ("gain: log", ['1: gain: expected "exponential" or "linear", found "log"']),
    "a mode that is none": (
        "fail_on:\n  mode: lenient",
        ['2: fail_on.mode: expected "noninferiority" or "significant" or "strict", found "lenient"'],
    ),
    "an alpha of 0": (
        "fail_on:\n  alpha: 0",
        ["2: fail_on.alpha: expected a number from 0.001 up to 1, as 0.05, found 0"],
    ),
    "an alpha of 1": (
        "fail_on: {alpha: 1}",
        ["1: fail_on.alpha: expected a number from 0.001 up to 1, as 0.05, found 1"],
    ),
    "a drop at a cut-off that is not k": (
        "k: [1, 5]\nfail_on:\n  recall_at_10_drop_gt: 0.1",
        ["3: fail_on.recall_at_10_drop_gt: 10 is not in k; add it there, or name a cut-off that is"],
    ),
    "a minimum at a cut-off that is not k": (
        "minimums:\n  recall_at_10: 0.9\nk: [1, 5]",
        ["2: minimums.recall_at_10: 10 is not in k; add it there, or name a cut-off that is"],
    ),
    "a minimum at a cut-off where k is left out": (
        "minimums:\n  recall_at_10: .5\n  recal_at_10: .5",
        [
            "2: minimums.recall_at_10: 10 is not in k; add it there, or name a cut-off that is",
            "3: minimums.recal_at_10: unknown key; did you mean 'recall_at_k'?",
        ],
    ),
    "a minimum of a tag": (
        "k: 3\ntags:\n  eu:\n    minimums:\n      map_at_3: 2",
        [f"5: tags.eu.minimums.map_at_3: {FRACTION}, found 2"],
    ),
    "limits of a tag": (
        "k: [5, 20]\ntags:\n  p:\n   minimums: {mrr_at_10: 0.9}\n   fail_on: {mode: strict}\n   minimum: {}\n  eu: 0.9",
        [
            "4: tags.p.minimums.mrr_at_10: 10 is not in k; add it there, or name a cut-off that is",
            "5: tags.p.fail_on.mode: unknown key; known here: "
            + ", ".join(
                [f"{name}{cutoff}_drop_gt" for name in NAMES for cutoff in ("", "_at_20")]
                + [f"{name}_at_5_drop_gt" for name in NAMES]
                + OF_ROWS
            ),
            "6: tags.p.minimum: unknown key; did you mean 'minimums'?",
            "7: tags.eu: expected an object, found 0.9",
        ],
    ),
    "a drop of ten": ("fail_on:\n  mrr_drop_gt: 10", [f"2: fail_on.mrr_drop_gt: {DROP}, found 10; write 0.1"]),
    "a negative drop": ("fail_on:\n  mrr_drop_gt: -5%", [f'2: fail_on.mrr_drop_gt: {DROP}, found "-5%" (text)']),
    "a drop of more than all": (
        "fail_on:\n  mrr_drop_gt: 101%",
        [f'2: fail_on.mrr_drop_gt: {DROP}, found "101%" (text)'],
    ),
    "a drop with a line break": (
        'fail_on:\n  mrr_drop_gt: "10%\\n"',
        [f'2: fail_on.mrr_drop_gt: {DROP}, found "10%\\n" (text)'],
    ),
    "NaN": ("fail_on: {mrr_drop_gt: .nan}", [f'1: fail_on.mrr_drop_gt: {DROP}, found ".nan" (text)']),
    "infinity": ("minimums: {mrr_at_k: .inf}", [f'1: minimums.mrr_at_k: {FRACTION}, found ".inf" (text)']),
    "infinity by size": ("minimums: {mrr_at_k: 1e999}", [f'1: minimums.mrr_at_k: {FRACTION}, found "1e999" (text)']),
    "a minimum in percent": (
        "minimums: {mrr_at_k: 50%}",
        [f'1: minimums.mrr_at_k: {FRACTION}, found "50%"; write 0.5'],
    ),
    "a group that is a number": ("fail_on: 3", ["1: fail_on: expected an object, found 3"]),
    "a group that is text": ("fail_on: x", ['1: fail_on: expected an object, found "x" (text)']),
    "a group that is a list": ("fail_on: [a]", ['1: fail_on: expected an object, found ["a"]']),
    "a choice that is none": ("rank_by: doc", ['1: rank_by: expected "documents" or "results", found "doc"']),
    "no for false": (
        "per_query:\n  enforce_must_include: no",
        ['2: per_query.enforce_must_include: expected true, false or new, found "no"; write false'],
    ),
    "an unknown key": ("kk: 5", [f"1: kk: unknown key; known here: {KEYS}"]),
    "a misspelled key": ("min-imums: {}", ["1: min-imums: unknown key; did you mean 'minimums'?"]),
    "an unknown key in a group": (
        "fail_on:\n  mmr_drop_gt: 0.1\n\n  latency: 1",
        [
            "2: fail_on.mmr_drop_gt: unknown key; did you mean 'mrr_drop_gt'?",
            f"4: fail_on.latency: unknown key; known here: {DROPS}",
        ],
    ),
    "a key that belongs in a group": (
        "recall_drop_gt: 0.1",
        ["1: recall_drop_gt: unknown key; write it under 'fail_on', indented"],
    ),
    "a key of megabytes": (
        "? " + "x" * 200_000 + "\n: 3",
        ["1: has a key of more than 300 characters: '" + "x" * 39 + "…'"],
    ),
    "duplicate keys, and what is wrong besides": (
        "fail_on:\n  mrr_drop_gt: 0.1\n  mrr_drop_gt: 0.2\nk: 5\n'k': 6\nkk: 1",
        [
            "3: fail_on.mrr_drop_gt: duplicate key, first defined at line 2",
            "5: k: duplicate key, first defined at line 4",
            f"6: kk: unknown key; known here: {KEYS}",
        ],
    ),
    "an alias": (
        "k: &five 5\nper_query:\n  forbidden_within: *five",
        ["3: per_query.forbidden_within: is an alias (*name), which is not read here; write the value out"],
    ),
    "aliases that explode": (
        "a: &a [1, 1]\n"
        + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefghijklm", "bcdefghijklmn", strict=True)),
        [
            line
            for number, key in enumerate("bcdefghijklmn", start=2)
            for line in (
                f"{number}: {key}[0]: is an alias (*name), which is not read here; write the value out",
                f"{number}: {key}[1]: is an alias (*name), which is not read here; write the value out",
            )
        ],
    ),
    "an alias of itself": (
        "minimums: &m {mrr_at_k: *m}",
        ["1: minimums.mrr_at_k: is an alias (*name), which is not read here; write the value out"],
    ),
    "a tag that runs code": (
        "k: !!python/object/apply:os.system ['true']",
        ["1: k: has a tag (!!python/object/apply:os.system), which is not read here; leave it out"],
    ),
    "a tag of somebody's own": ("k: !mine 5", ["1: k: has a tag (!mine), which is not read here; leave it out"]),
    "a key that is a list": ("? [a]\n: 3", ["1: has a key that is not plain text"]),
    "two documents": (
        "k: 5\n---\nk: 6",
        ["2: is not YAML: expected a single document in the stream, but found another document"],
    ),
    "half of a character": (
        'k: 5\nwaivers:\n- {query: q1, owner: ann, expires: "2026-12-31",\n   reason: "x\\ud800y"}\n"\\udc00": 1',
        [
            f"4: waivers[0].reason: {HALF}",
            f"5: has a key that {HALF}",
        ],
    ),
    "a tab": (
        "fail_on:\n\tmrr_drop_gt: 0.1",
        [
            (
                "2: is not YAML: while scanning for the next token, found character '\\t' that cannot start any token; "
                "indent with spaces, not tabs"
            )
        ],
    ),
    "a bracket that is not closed": (
        "k: 5\nfail_on: {",
        ["2: is not YAML: while parsing a flow node, expected the node content, but found '<stream end>'"],
    ),
    "a control character": ("k: 5\nminimums: \x01", ["2: has a character that YAML does not allow (U+0001)"]),
    "100,000 nested brackets": ("k: " + "[" * 100_000, ["1: is nested more than 20 levels deep"]),
    "300 nested brackets": ("k: " + "[" * 300 + "]" * 300, ["1: is nested more than 20 levels deep"]),
}


@pytest.mark.parametrize(("text", "expected"), CONFIGS.values(), ids=CONFIGS.keys())
def test_a_bad_configuration_is_refused(
    text: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("ragcontract.yml").write_text(text)
    said = errors(refused(tmp_path))
    wrong_with_aliases = [line for line in said if "alias" in line] or said
    assert wrong_with_aliases == [f"ragcontract.yml:{line}" for line in expected]


FILES: dict[str, tuple[bytes, str]] = {
    "Latin-1": (b"k: 5\n# \xf6", "ragcontract.yml:2: is not UTF-8 (byte 0xf6); save the file as UTF-8"),
    "UTF-16": ("k: 5".encode("utf-16"), "ragcontract.yml:1: is UTF-16 or UTF-32; save the file as UTF-8"),
    "more than a megabyte": (
        b"#" * ((1 << 20) + 1),
        "ragcontract.yml: is larger than 1 MiB, the limit for a configuration",
    ),
    "damaged gzip": (
        b"\x1f\x8b\x08" + b"\0" * 7 + b"\xff" * 30,
        "ragcontract.yml: the gzip data is damaged or cut off (Error -3 while decompressing data: invalid block type)",
    ),
}


@pytest.mark.parametrize(("data", "expected"), FILES.values(), ids=FILES.keys())
def test_a_configuration_that_is_no_text_is_refused(
    data: bytes, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("ragcontract.yml").write_bytes(data)
    assert errors(refused(tmp_path)) == [expected]


def test_a_limit_that_cannot_be_judged_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("baseline.json").unlink()
    assert errors(refused(tmp_path)) == [
        (
            "ragcontract.yml:3: fail_on.mrr_drop_gt cannot be judged: there is no baseline; "
            "make one with `rag-contract baseline`, or leave the limit out"
        )
    ]
