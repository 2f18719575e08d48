"""Statement texts as tests/lib/ycql_proxy.py sees them: what kind they are, what YugabyteDB refuses,
what FGW's own rules forbid (spec/ycql.md section 0.3), and answers in YugabyteDB's words."""
import re

LITERALS = re.compile(r"'(?:[^']|'')*'")
TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE|TRUNCATE(?:\s+TABLE)?|TABLE(?:\s+IF\s+(?:NOT\s+)?EXISTS)?)"
                   r"\s+([\w.]+)", re.IGNORECASE)
FORBIDDEN = [re.compile(pattern, re.IGNORECASE) for pattern in (
    r"\bALLOW\s+FILTERING\b", r"\bUSING\s+TIMESTAMP\b", r"\bSELECT\s+\*", r"^\s*USE\b",
    r"^\s*BEGIN\b", r"^\s*START\b", r"\bLIMIT\s+0\b", r"\btoken\s*\(", r"\bPER\s+PARTITION\b",
    r"\bGROUP\s+BY\b", r"\bOFFSET\b", r"\bSELECT\s+JSON\b", r"\bCOUNT\s*\(",
    r"^\s*CREATE\s+(?:INDEX|CUSTOM|MATERIALIZED|TYPE|FUNCTION|AGGREGATE)\b",
    r"\bADD\s+IF\s+NOT\s+EXISTS\b", r"\bADD\s*\(", r"\btransactions\b", r";",
    r"\bIF\b.*\bOR\b", r"\bELSE\s+ERROR\b", r"\bcounter\b", r"\bALTER\s+KEYSPACE\b")]
TRANSIENT = (0x1000, 0x1002, 0x1003, 0x1100, 0x1200, 0x1300, 0x1500, 0x1600, 0x1700)


def bare(text):
    """Without what stands in quotes."""
    return LITERALS.sub("''", text)


def kind_of(text):
    words = bare(text).split(None, 1)
    first = words[0].upper() if words else ""
    if first == "SELECT":
        return "select"
    if first in ("INSERT", "UPDATE", "DELETE"):
        return "lwt" if re.search(r"\bIF\b", bare(text), re.IGNORECASE) else "write"
    return "ddl" if first in ("CREATE", "ALTER", "DROP", "TRUNCATE") else "other"


def table_of(text):
    found = TABLE.search(bare(text))
    return found.group(1).lower() if found else ""


def forbidden(text):
    """The rule this statement breaks, or None."""
    for pattern in FORBIDDEN:
        if pattern.search(bare(text)):
            return pattern.pattern
    return None


def refused_replication(text):
    """NetworkTopologyStrategy takes data centers only, SimpleStrategy the factor only."""
    if not re.match(r"\s*CREATE\s+KEYSPACE\b", text, re.IGNORECASE):
        return False
    factor = "replication_factor" in text
    return ("NetworkTopologyStrategy" in text) == factor


def message(title, text, number):
    """Title, the statement with a caret, and the number that alone is stable."""
    return f"{title}\n{text[:120]}\n^^^^^^\n (ql error {number})"


def translated(code, said, text):
    """(code, message) as YugabyteDB would answer what Cassandra answered."""
    lower = said.lower()
    if code == 0x2400:
        space = re.match(r"\s*CREATE\s+KEYSPACE", text, re.IGNORECASE)
        return (0x2200, message("Keyspace Already Exists", text, -307) if space else
                message("Duplicate Object. Object already exists", text, -202))
    if code == 0x2000:
        return 0x2000, message("Invalid CQL Statement. " + said, text, -12)
    if code == 0x2100:
        return 0x2100, message("Unauthorized. " + said, text, -4)
    if code == 0x0000 or code in TRANSIENT:
        return 0x2200, deadline(text)
    if code == 0x2300:
        return 0x2200, message("Keyspace Not Found", text, -308)
    if code != 0x2200:
        return code, said
    number = -200
    if "unconfigured table" in lower or re.match(r"table \S+ does not exist", lower):
        said, number = "Object Not Found", -301
    elif "keyspace" in lower and "exist" in lower:
        said, number = "Keyspace Not Found", -308
    elif "conflicts with an existing column" in lower or "already exists" in lower:
        said, number = "Duplicate Column. Column already exists", -204
    elif "undefined column" in lower or "was not found in table" in lower:
        said, number = "Undefined Column. Column doesn't exist", -203
    return 0x2200, message(said, text, number)


def deadline(text):
    """A lost leader or a tablet that was too slow: says nothing about what was applied."""
    return message("Execution Error. Timed out: Failed UpdateTransaction/Write RPC "
                   "passed its deadline", text, -300)
