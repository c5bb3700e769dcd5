"""Runs on disk as a stranger could write them: edited, with digests that are right again.

This uses hashlib, zlib, json and pyarrow as docs/runs.md describes the format, and nothing of gosprl.
"""

import hashlib
import json
import zlib

import pyarrow as pa

END = b"\xff\xff\xff\xff\0\0\0\0"


def canonical(value):
    """Return JSON with sorted keys, a line for each field."""
    fields = [f"{json.dumps(name)}: {json.dumps(value[name], sort_keys=True)}" for name in sorted(value)]
    return ("{\n" + ",\n".join(fields) + "\n}\n").encode()


def sealed(value):
    """Return a JSON file with its digest."""
    return canonical({**value, "digest": hashlib.sha256(canonical(value)).hexdigest()})


def reseal(file, change):
    """Let `change` edit the content of a JSON file."""
    value = json.loads(file.read_bytes())
    del value["digest"]
    change(value)
    file.write_bytes(sealed(value))


def table_of(directory):
    """Return all columns of a log."""
    parts = [pa.ipc.open_stream(file.read_bytes()).read_all() for file in sorted(directory.glob("log/*.arrow"))]
    return pa.concat_tables(parts)


def forge(directory, change):
    """Let `change` edit the columns of a log without names, as lists; the certificate names the new digest."""
    table = table_of(directory)
    columns = table.to_pydict()
    change(columns)
    batch = pa.record_batch([pa.array(columns[f.name], f.type) for f in table.schema], schema=table.schema)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_batch(batch)
    data = sink.getvalue().to_pybytes()
    for file in directory.glob("log/*"):
        file.unlink()
    (directory / "log/000001.arrow").write_bytes(data)
    run = json.loads((directory / "manifest.json").read_bytes())["run"]
    digest, lines = hashlib.sha256(run.encode()).digest(), b""
    body, parts = data[: -len(END)], []
    parts = [(0, body, batch.num_rows), (len(body), END, 0)]
    for number, (offset, part, rows) in enumerate(parts, 1):
        fields = f"{number:010d} {'log/000001.arrow':<16} {offset:016d} {len(part):010d} {rows:07d} ".encode()
        digest = hashlib.sha256(digest + fields + part).digest()
        line = fields + digest.hex().encode() + b" "
        lines += line + b"%08x\n" % zlib.crc32(line)
    (directory / "log/chain").write_bytes(lines)
    if (directory / "certificate.json").exists():
        reseal(directory / "certificate.json", lambda value: value.update(log=digest.hex()))


def contents(directory):
    """Return the bytes and times of all files."""
    return {
        file.relative_to(directory).as_posix(): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in sorted(directory.rglob("*"))
        if file.is_file()
    }
