"""The sections of the storm, in the order in which they run."""

from . import broken_files, command_lines, full_disk, hostile_hub, kills
from .cases import Section


SECTIONS = (
    Section(
        "broken-files",
        "files that were broken, read by the verbs",
        broken_files.case,
        cases=520,
        few=25,
        is_confined=True,
    ),
    Section("command-lines", "generated command lines", command_lines.case, cases=2000, few=60, is_confined=True),
    Section("hostile-hub", "commands with a hostile Hub", hostile_hub.case, cases=48, few=4),
    Section("full-disk", "commands on a disk that fills up", full_disk.case, cases=16, few=2),
    Section("kills", "kills, and the same command again", kills.case, cases=len(kills.WEIGHTED), few=4),
)
