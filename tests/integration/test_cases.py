"""tests/CASES.md names tests that exist."""
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parent.parent


def functions():
    """File -> its test functions; all names of cmocka tests."""
    files = {path.stem: re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
             for path in TESTS.glob("*/test_*.py")}
    units = {path.read_text() for path in (*TESTS.glob("unit/*/*.c"), *TESTS.glob("contract/*/*.c"))}
    return files, set(re.findall(r"cmocka_unit_test\w*\((\w+)", "\n".join(units)))


def rows():
    for line in (TESTS / "CASES.md").read_text().splitlines():
        if re.match(r"\| B?\d+ \|", line):
            yield line.split("|")[1].strip(), re.sub(r"\([^)]*\)", "", line.split("|")[2])


def test_all_names_exist():
    files, units = functions()
    missing = []
    for case, text in rows():
        for part in text.split(";"):
            file, program = None, None
            for word in re.findall(r"[\w/]+\*?(?:::\w+\*?)?", part):
                base, _, name = word.split("/")[-1].partition("::")
                if base in files or name:
                    file = base
                elif base.startswith("test_"):
                    name = base
                elif base.startswith("unit_"):
                    program = base
                elif program is not None and base not in units:
                    missing.append((case, word))
                if name and not any(re.fullmatch(name.replace("*", ".*"), one)
                                    for one in files.get(file, ())):
                    missing.append((case, word))
    assert not missing
    assert len(list(rows())) > 150
