"""A lab's folder in small: FCS files of patients with time, scatter and dyes, and the tables beside them."""

import zipfile

import numpy as np

from io_cases import write_fcs

CHANNELS = ("Time", "FSC-A", "FSC-H", "FITC-A", "PE-A", "APC-A")
LABELS = ("", "", "", "CD3", "CD4", "Ki67")
PANEL = "fcs_colname,antigen,marker_class\nFITC-A,CD3,type\nPE-A,CD4,type\nAPC-A,Ki67,state\nTime,,none\n"


def lab_events(count=200, seed=0, channels=CHANNELS):
    """Events around zero in part, bright in part; time ascending, scatter positive."""
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((count, len(channels))) < 0.4, rng.lognormal(8, 1, (count, len(channels))), 0)
    values += rng.normal(0, 100, values.shape)
    for place, name in enumerate(channels):
        if name.lower() == "time":
            values[:, place] = np.arange(count)
        elif name.startswith(("FSC", "SSC")):
            values[:, place] = rng.uniform(2e4, 1e5, count)
    return values


def write_sample(path, events=None, channels=CHANNELS, labels=LABELS, top=262144, extra=None, **same):
    """One FCS file; its path."""
    values = lab_events(seed=len(path.name), channels=channels) if events is None else events
    said = {f"$P{n}S": label for n, label in enumerate(labels, 1) if label}
    return write_fcs(path, values, channels, ranges=[top] * len(channels), extra=said | (extra or {}), **same)


def write_folder(folder, count=4, **same):
    """A folder of samples a0.fcs, a1.fcs, …; its path."""
    folder.mkdir(exist_ok=True)
    for k in range(count):
        write_sample(folder / f"a{k}.fcs", lab_events(120 + 10 * k, seed=k), **same)
    return folder


def write_samples(path, count=4, extra=""):
    """CATALYST's table of the samples of such a folder, in two conditions of paired patients; its path."""
    rows = [f"a{k}.fcs,s{k},{'ref' if k % 2 else 'stim'},p{k // 2},{40 + k}" for k in range(count)]
    path.write_text("file_name,sample_id,condition,patient_id,age\n" + "\n".join(rows) + "\n" + extra)
    return path


ODS = """<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">
<office:body><office:spreadsheet><table:table table:name="s">{}</table:table></office:spreadsheet></office:body>
</office:document-content>"""


def write_ods_sheet(path, rows):
    """A sheet of LibreOffice with these rows of text and numbers; its path."""

    def cell(value):
        kind = "float" if isinstance(value, float) else "string"
        said = f' office:value="{value}"' if kind == "float" else ""
        return f'<table:table-cell office:value-type="{kind}"{said}><text:p>{value}</text:p></table:table-cell>'

    lines = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        packed.writestr("META-INF/manifest.xml", "<manifest/>")
        packed.writestr("content.xml", ODS.format(lines))
    return path
