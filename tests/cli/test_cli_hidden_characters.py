"""Names and notes cannot command a terminal: what is printed or put into a report holds no control characters."""

import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from file_kinds import write_any
from reduset import io
from reduset._messages import HIDDEN, printable
from reduset.cli.entry import run
from reduset.model import Model

CLEAR = "\x1b[2J\x1b[Hall is well\x07\r\x9b2J\u202eevil"


def clean(text):
    return HIDDEN.search(text.replace("\n", "")) is None


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    columns = {CLEAR: rng.normal(size=90), "two\nlines": rng.normal(size=90), f"t{CLEAR}": ["x"] * 90}
    path = tmp_path / "rows\x1b[2J.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_hidden_characters_become_escapes():
    assert printable("a\x1b[2Jb") == r"a\x1b[2Jb"
    assert printable("a\nb") == r"a\nb"
    assert printable("a\nb\x7f", lines=True) == "a\nb\\x7f"
    assert printable("\u202eabc\udc80") == r"\u202eabc\udc80"
    assert printable("µ ‖f‖² 日本 C:\\new") == "µ ‖f‖² 日本 C:\\new"


def test_what_commands_print_and_report_cannot_command_the_terminal(rows, tmp_path, capsys):
    model, page = str(tmp_path / "small\x1b.npz"), tmp_path / "small.html"
    assert run(["compress", str(rows), "--size", "9", "-o", model, "--report", str(page)]) == 0
    assert run(["info", model]) == 0
    assert run(["report", model, "-o", str(tmp_path / "again\x1b.html")]) == 0
    assert run(["distance", model, str(rows)]) == 0
    assert run(["evaluate", model, str(rows), "-o", str(tmp_path / "scores\x1b.csv")]) == 0
    shown = capsys.readouterr()
    assert clean(shown.out)
    assert clean(shown.err)
    assert r"\x1b[2J" in shown.out
    assert "\nlines" not in shown.out
    text = page.read_text(encoding="utf-8")
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)  # plotly's own texts
    assert clean(own)
    assert r"\x1b[2J" in own
    assert "\\u001b" not in own  # in the data of the pictures neither


@pytest.mark.parametrize("words", [["-c", CLEAR + "?"], ["--group-column", CLEAR + "?"], ["--missing", CLEAR], ["--select", CLEAR]])
def test_refusals_cannot_either(rows, tmp_path, capsys, words):
    assert run(["compress", str(rows), "--size", "9", "-o", str(tmp_path / "small.npz"), *words]) == 2
    assert clean(capsys.readouterr().err)


def test_shares_of_groups_cannot_either(tmp_path, capsys):
    table = pa.table({"a": np.random.default_rng(0).normal(size=60), "site": [CLEAR, "b\nc"] * 30})
    pq.write_table(table, tmp_path / "rows.parquet")
    words = ["compress", str(tmp_path / "rows.parquet"), "--size", "9", "--group-column", "site"]
    assert run([*words, "-o", str(tmp_path / "small.npz")]) == 0
    out = capsys.readouterr().out
    assert clean(out)
    assert "\nc" not in out


def test_errors_and_names_of_tables_and_models_hold_none(rows, tmp_path):
    with pytest.raises(io.FileError) as caught:
        io.read(rows, columns=["nobody"])
    assert clean(str(caught.value))
    assert clean(repr(io.read(rows)))
    assert run(["compress", str(rows), "--size", "9", "-q", "-o", str(tmp_path / "small.npz")]) == 0
    assert clean(str(Model.load(tmp_path / "small.npz")))


def test_names_that_are_no_utf8_are_read_and_reported(tmp_path, capsys):
    odd = os.fsdecode(b"r\xffws.csv")
    with open(tmp_path / odd, "w") as stream:
        stream.write("a,b\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(60)))
    page = tmp_path / "small.html"
    out = str(tmp_path / os.fsdecode(b"sm\xffll.npz"))
    assert run(["compress", str(tmp_path / odd), "--size", "5", "-o", out, "--report", str(page)]) == 0
    assert r"r\udcffws.csv" in page.read_text(encoding="utf-8")
    assert r"sm\udcffll.npz" in capsys.readouterr().out
    assert run(["info", out]) == 0
    assert r"r\udcffws.csv" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["csv.gz", "parquet", "feather", "arrows", "orc", "npy", "npz", "h5ad", "fcs", "png"])
def test_every_format_is_read_under_a_name_that_is_no_utf8(tmp_path, suffix):
    plain = write_any(tmp_path / f"rows.{suffix}")
    odd = tmp_path / os.fsdecode(b"r\xff." + suffix.encode())
    odd.write_bytes(plain.read_bytes())
    np.testing.assert_array_equal(io.read(odd).values, io.read(plain).values)
