"""All findings of a study, part by part."""

from headcount.reports.findings.collect import collect_findings
from headcount.reports.study import read_study


def test_a_real_study_has_findings_of_every_part_and_their_sources_exist(study):
    found = collect_findings(read_study(study))
    assert list(found) == ["runs", "heads", "pruning", "length-sortedness", "length-addition"]
    for finding in (finding for own in found.values() for finding in own):
        assert (study / finding.source).exists() and finding.text.endswith(".") and finding.figure
