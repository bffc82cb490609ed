"""The pages on recording: the guide and the reference, whose blocks have different names."""

from tests.runner import ROOT

PAGE = "\n".join((ROOT / "docs" / name).read_text() for name in ("guides/record.md", "reference/recording.md"))
