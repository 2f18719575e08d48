"""What the checks of the tree share: the files git knows, C without comments and strings, reports."""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def files(*suffixes, under=()):
    """Paths below the top, tracked or new but not ignored, that end so and lie in one of `under`."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP, check=True,
                            capture_output=True, text=True).stdout.splitlines()
    return sorted(path for path in set(listed)
                  if (not suffixes or path.endswith(suffixes))
                  and (not under or path.startswith(tuple(under)))
                  and os.path.isfile(os.path.join(TOP, path)))


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def code_only(text, keep_strings=False):
    """C text with comments (and strings) blanked out; line numbers stay."""
    def blank(match):
        token = match.group(0)
        if keep_strings and token[0] in "\"'":
            return token
        if token[0] in "\"'":
            return token[0] * 2 + " " * (len(token) - 2)
        return re.sub(r"[^\n]", " ", token)
    return TOKEN.sub(blank, text)


def changed_files(*suffixes):
    """Files that differ from the main branch (or, on it, from the last commit)."""
    head = git("rev-parse", "HEAD")
    base = git("merge-base", "HEAD", os.environ.get("FGW_CHECK_BASE", "main"))
    if base in ("", head):
        base = git("rev-parse", "HEAD~1") or head
    names = git("diff", "--name-only", "--diff-filter=d", base).splitlines()
    return [path for path in files(*suffixes) if path in names]


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=TOP, capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def finish(name, findings):
    """Prints the findings; ends the program with 0 when there are none."""
    for finding in findings:
        print(finding)
    if findings:
        print(f"{name}: {len(findings)} finding(s)")
    sys.exit(1 if findings else 0)
