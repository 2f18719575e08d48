"""The checks of the tree find what they are for: each is run in a small tree with one mistake."""
import pathlib
import shutil
import subprocess

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
BASE = "fgw_module(base\n    SOURCES a.c)\n"
NET = "fgw_module(net\n    SOURCES a.c\n    USES event)\n"
LONG = "static int f(void)\n{\n" + "    g();\n" * 69 + "}\n"


def run_check(folder, name, files):
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    shutil.copytree(TOOLS, folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return subprocess.run([f"tools/{name}"], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name, files, finding", [
    ("check_layers", {"src/base/CMakeLists.txt": BASE, "src/base/a.h": "",
                      "src/net/CMakeLists.txt": NET, "src/net/a.c": '#include "base/a.h"\n'},
     "src/net/a.c:1: src/net does not declare USES base"),
    ("check_layers", {"src/net/a_internal.h": "", "src/http/b.c": '\n#include "net/a_internal.h"\n'},
     "src/http/b.c:2: net/a_internal.h is internal to src/net"),
    ("check_layers", {"src/http/b.c": "#include <uv.h>\n"}, "belongs to src/event"),
    ("check_layers", {"src/a/CMakeLists.txt": "fgw_module(a SOURCES a.c USES b)\n",
                      "src/b/CMakeLists.txt": "fgw_module(b SOURCES b.c USES a)\n"},
     "in a circle: a -> b -> a"),
    ("check_banned", {"src/s3/a.c": "void f(char *a)\n{\n    strcpy(a, \"x\");\n}\n"},
     "src/s3/a.c:3: strcpy"),
    ("check_banned", {"src/s3/a.c": "p = malloc(3);\n"}, "malloc; use fgw_xmalloc"),
    ("check_banned", {"src/s3/a.c": "typedef struct a {\n"}, "no typedef"),
    ("check_banned", {"README.md": "TO" "DO: more\n"}, "belongs into an issue"),
    ("check_caps", {"src/s3/a.c": LONG}, "src/s3/a.c:2: f has 71 lines"),
    ("check_caps", {"src/s3/a.c": "int a;\n" * 1001}, "1001 lines"),
    ("check_caps", {"tests/a.py": "def f():\n" + "    g()\n" * 70}, "f has 71 lines"),
])
def test_finds(tmp_path, name, files, finding):
    done = run_check(tmp_path, name, files)
    assert done.returncode == 1 and finding in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["check_layers", "check_banned", "check_caps"])
def test_leaves_good_code_alone(tmp_path, name):
    done = run_check(tmp_path, name, {
        "src/base/CMakeLists.txt": BASE, "src/base/a.h": "", "src/base/m.c": "p = malloc(3);\n",
        "src/net/CMakeLists.txt": "fgw_module(net SOURCES a.c USES base)\n",
        "src/net/a.c": '#include "base/a.h"\n/* strcpy(a, b) */ char *s = "gets(x)"; x->free(y);\n',
        "src/s3/b.c": LONG.replace("    g();\n", "", 1)})
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
