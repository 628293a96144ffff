"""What the API answers: the library's scores, what there is, files, and errors of one line."""

import asyncio
import csv
import datetime
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from starlette.testclient import TestClient

import freight
from freight.encoders import encoder as find_encoder
from freight.explain.explanation import Explanation
from freight.serve import models as models_module
from freight.serve import routes
from freight.serve.forms import form_fields
from freight.serve.models import ServedModels, load_encoders
from freight.serve.refusals import Limits, QueueFull
from freight.serve.worker import Worker
from made_adapters import made_adapter
from serve.conftest import open_client
from sharing import need_encoder

PAIRS = [
    {"hyp": "the boy in a coat", "refs": ["the young man in a slicker", "a boy wears a coat"]},
    {"hyp": "", "refs": ["something"]},
    {"hyp": "three cats slept", "refs": ["three cats slept"]},
]


FOREIGN = re.compile("Field|Input|[Vv]alid|pydantic|Not Found|Method|parsing")
"""Words of the libraries that read requests: our errors have words of their own."""


def ask(client: TestClient, path: str = "/api/score", **body: Any) -> dict[str, Any]:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


def refused(client: TestClient, status: int = 422, path: str = "/api/score", **body: Any) -> str:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    content = answer.json()
    assert list(content) == ["error"]
    assert "\n" not in content["error"]
    assert "Traceback" not in content["error"]
    assert not FOREIGN.search(content["error"]), content["error"]
    return str(content["error"])


def test_critical_differences_have_spans(client: TestClient) -> None:
    pair = {"hyp": "take 10 mg", "refs": ["take 100 mg"]}
    (flag,) = ask(client, pairs=[pair], metrics=[{"name": "chrf"}])["metrics"][0]["flags"][0]
    assert (flag["kind"], flag["hyp"], flag["ref"]) == ("number differs", [5, 7], [5, 8])
    explained = ask(client, "/api/explain", **pair)
    assert explained["flags"] == [flag]


def numbers(values: Any) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in values]


@pytest.mark.parametrize(
    "metric",
    [
        {"name": "freight"},
        {"name": "lazy-emd", "settings": {"hyp": 0.5, "ref": "inf", "epsilon": 0.02}},
        {"name": "lazy-emd", "preset": "exact", "column": "objective"},
        {"name": "bert-score", "layer": 0, "settings": {"references": "mean"}},
        {"name": "wmd"},
        {"name": "std", "settings": {"order": 0.2}},
        {"name": "mover-score", "settings": {"idf": None}},
        {"name": "bleu"},
    ],
)
def test_scores_are_those_of_the_library(client: TestClient, metric: dict[str, Any]) -> None:
    [record] = ask(client, pairs=PAIRS, metrics=[metric])["metrics"]
    settings = {**metric.get("settings", {})}
    settings |= {k: metric[k] for k in ("layer", "preset", "column") if k in metric}
    settings = {k: float("inf") if x == "inf" else x for k, x in settings.items()}
    if "encoder" in freight.parameters(metric["name"]):
        settings["encoder"] = "hashed"
    local = freight.load(metric["name"], **settings).score(
        [str(pair["hyp"]) for pair in PAIRS], [list(pair["refs"]) for pair in PAIRS]
    )
    assert record["metric"] == metric["name"]
    assert [c["name"] for c in record["columns"]] == [c.name for c in local.columns]
    assert record["scores"] == {name: numbers(x) for name, x in local.segments.items()}
    assert record["system"] == dict(zip(local.system, numbers(local.system.values()), strict=True))
    assert record["references"] == local.winners.tolist()
    assert record["flags"] == [[flag.record for flag in flags] for flags in local.flags]
    assert record["signature"] == local.signature


def test_metrics_come_back_in_the_order_of_the_request_twice_if_asked_twice(
    client: TestClient,
) -> None:
    several = [{"name": "emd"}, {"name": "bleu"}, {"name": "emd"}, {"encoder": "one-hot"}]
    records = ask(client, pairs=PAIRS, metrics=several)["metrics"]
    assert [one["metric"] for one in records] == ["emd", "bleu", "emd", "freight"]
    assert records[0] == records[2]


def test_what_there_is(client: TestClient, light: ServedModels) -> None:
    entries = {one["name"]: one for one in client.get("/api/metrics").json()["metrics"]}
    assert set(entries) <= set(freight.list_metrics())
    assert {"freight", "lazy-emd", "bert-score", "std", "bleu"} <= set(entries)
    assert entries["bleu"]["explained"] is False
    assert entries["bleu"]["encoder"] is None
    assert entries["std"]["columns"][0] == {"name": "distance", "higher": False}
    encoders = client.get("/api/encoders").json()["encoders"]
    assert [one["name"] for one in encoders] == ["hashed", "one-hot"]


def test_every_default_may_be_sent_back(client: TestClient) -> None:
    """What is described can be set, and changes nothing."""
    for one in client.get("/api/metrics").json()["metrics"]:
        settings = {p["name"]: p["default"] for p in one["parameters"] if p["name"] != "layer"}
        settings.pop("idf", None)
        if one["name"] in ("yisi-1", "mover-score"):
            continue
        asked = [{"name": one["name"]}, {"name": one["name"], "settings": settings}]
        plain, spelt = ask(client, pairs=PAIRS[:1], metrics=asked)["metrics"]
        assert plain["scores"] == spelt["scores"], one["name"]


def test_what_metrics_choose_for_themselves_is_what_sliders_show() -> None:
    chosen_by_language = []
    for name in freight.list_metrics():
        source = {"encoder": "hashed"} if "encoder" in freight.parameters(name) else {}
        for field in form_fields(name).values():
            parameter = field.parameter
            if parameter.automatic != parameter.default:
                chosen_by_language.append(f"{name}.{parameter.name}")
                settings = {parameter.name: parameter.automatic}
                assert freight.load(name, **source) == freight.load(name, **source, **settings)
                assert field.describe({})["default"] == parameter.automatic
    assert chosen_by_language == [
        "lazy-emd.hyp",
        "lazy-emd.ref",
        "f-alpha.alpha",
        "bleu.tokenize",
        "sentence-bleu.tokenize",
    ]


def test_parameters_that_could_name_a_file_a_language_or_code_are_not_there() -> None:
    for name in freight.list_metrics():
        assert not {"encoder", "lang", "preset", "column", "tags"} & set(form_fields(name))
    with pytest.raises(freight.InvalidInput, match="must be a number, -1 to"):
        form_fields("bert-score")["baseline"].check("bert-score", "/etc/passwd")


def test_every_control_of_a_form_has_a_sentence_and_a_default_within_its_limits() -> None:
    for name in freight.list_metrics():
        for field in form_fields(name).values():
            shown = field.describe({})
            assert shown["about"].endswith("."), (name, shown)
            assert field.check(name, shown["default"]) == field.parameter.automatic


@pytest.mark.parametrize(
    ("metric", "culprit"),
    [
        ({"name": "xyz"}, "there is no metric 'xyz'; there is freight, freight-da"),
        ({"name": "lazyemd"}, "there is no metric 'lazyemd'; did you mean lazy-emd"),
        ({"settings": {"x": 1}}, "freight has no parameter 'x'; there is layer, hyp"),
        ({"encoder": "/etc"}, "'/etc' is not among those allowed: hashed, one-hot"),
        ({"encoder": "embedded"}, "not among those allowed"),
        ({"name": "bleu", "encoder": "hashed"}, "bleu has no encoder"),
        ({"preset": "../x.json"}, "freight has no preset '../x.json'; there is recall"),
        (
            {"name": "lazy-emd", "preset": "tuned.json"},
            "there is paper, authors, exact",
        ),
        ({"column": "nothing"}, "freight has no column 'nothing'; there is score"),
        ({"name": "lazy-emd", "settings": {"lang": "zh"}}, "'lang' of lazy-emd cannot be set"),
        ({"name": "lazy-emd", "settings": {"encoder": "x"}}, "cannot be set"),
        (
            {"name": "lazy-emd", "settings": {"epsilon": 1e-9}},
            "epsilon=1e-09 of lazy-emd: must be 0.001 to 1 or 0",
        ),
        (
            {"name": "lazy-emd", "settings": {"hyp": "0.5"}},
            "hyp='0.5' of lazy-emd: must be a number",
        ),
        ({"name": "lazy-emd", "settings": {"hyp": True}}, "must be a number"),
        ({"name": "lazy-emd", "settings": {"hyp": 0, "ref": 0}}, "both marginals are free"),
        ({"name": "emd", "settings": {"mass": "x" * 500}}, "must be one of uniform, norm, count"),
        ({"name": "bert-score", "settings": {"baseline": "/etc/passwd"}}, "must be a number"),
        ({"name": "bleu", "settings": {"tokenize": "flores200"}}, "must be one of 13a"),
        ({"name": "yisi-1"}, "start the service with --idf"),
        ({"name": "emd", "settings": {"idf": "ref"}}, "set idf to null"),
        ({"layer": 99}, "layer 99 is out of range"),
        ({"layer": "../x"}, "layer='../x' of freight: must be a number"),
        ({"layer": []}, "a list of 1 to 64 numbers"),
        ({"layer": [1] * 100}, "a list of 1 to 64 numbers"),
    ],
)
def test_metrics_that_cannot_be_had(
    client: TestClient, metric: dict[str, Any], culprit: str
) -> None:
    assert culprit in refused(client, pairs=PAIRS[:1], metrics=[metric])


@pytest.mark.parametrize(
    ("body", "culprit"),
    [
        ({}, 'pairs is missing; send {"pairs": [{"hyp": "...", "refs": ["..."]}]}, or hyps'),
        ({"pears": PAIRS}, "there is no field 'pears'; there is pairs, metrics, id"),
        ({"pairs": []}, "pairs has no entries; send at least one"),
        ({"pairs": "x"}, 'pairs is "x", not a list'),
        ({"pairs": ["x"]}, 'pairs[0] is "x", not an object, {"hyp": "...", "refs": ["..."]}'),
        ({"pairs": [{"hyp": "a", "refs": []}]}, "pairs[0].refs has no entries"),
        ({"pairs": [{"hyp": "a", "refs": ["b", 3]}]}, "pairs[0].refs[1] is 3, not a text"),
        ({"pairs": [{"hyp": "a", "refs": 3}]}, "pairs[0].refs is 3, not a list"),
        ({"pairs": [{"hyp": None, "refs": ["b"]}]}, "pairs[0].hyp is null, not a text; an empty"),
        ({"pairs": [{"refs": ["b"]}]}, "pairs[0] has no hyp; give hyp, and ref or refs"),
        ({"pairs": [{"hyp": "a"}]}, "pairs[0] has no refs; give hyp, and ref or refs"),
        ({"pairs": [{"hyp": "a", "ref": "b", "refs": ["b"]}]}, "pairs[0]: there are both ref and"),
        ({"pairs": [{"mt": "a", "output": "a", "ref": "b"}]}, "mt and output, each of which may"),
        (
            {"pairs": [{"hyp": "a", "refs": ["b"], "more": 1}]},
            "pairs[0]: there is no field 'more'; there is hyp, refs, id",
        ),
        ({"pairs": [{"hyp": "a", "refs": ["b"], "id": [1]}]}, "pairs[0].id is [1], not a text or"),
        ({"pairs": PAIRS, "metrics": []}, "metrics has no entries"),
        ({"pairs": PAIRS, "metrics": [{"name": "emd"}] * 9}, "metrics has 9 entries; send at most"),
        ({"pairs": PAIRS, "metrics": ["emd", 3]}, "metrics[1] is 3, not a metric: its name, or"),
        (
            {"pairs": PAIRS, "metrics": [{"nam": "emd"}]},
            "metrics[0]: there is no field 'nam'",
        ),
        ({"pairs": PAIRS, "metrics": [{"layer": {}}]}, "metrics[0].layer is {}, not a layer: a"),
        (
            {"pairs": PAIRS, "metrics": [{"settings": []}]},
            "settings is [], not an object",
        ),
        (
            {"pairs": PAIRS, "metrics": [{"settings": {"floor": [1]}}]},
            "metrics[0].settings.floor is [1], not a finite number, a text, true, false or null",
        ),
        ({"pairs": PAIRS, "metric": "emd", "metrics": ["emd"]}, "both metric and metrics"),
        ({"pairs": [{"hyp": "a", "refs": ["b" * 1001]}]}, "pairs[0].refs[0] has 1,001 characters"),
        ({"pairs": [{"hyp": "a", "refs": ["b"]}] * 11}, "there are 22 texts; send at most 20"),
        ({"hyps": ["a"]}, "refs is missing; send hyps and refs, or pairs"),
        ({"hyps": 3, "refs": ["b"]}, "hyps is 3, not a list of texts"),
        ({"hyps": ["a", "b"], "refs": ["b"]}, "there are 2 hypotheses but 1 references"),
        ({"hyps": [3], "refs": ["b"]}, "hyps[0] is 3, not a text"),
        ({"hyps": ["a"], "refs": [[]]}, "refs[0] is an empty list"),
        ({"hyps": ["a"], "refs": ["b"], "ids": ["x", "y"]}, "give one for each of 1 hyps"),
    ],
)
def test_requests_that_cannot_be_used(
    client: TestClient, body: dict[str, Any], culprit: str
) -> None:
    assert culprit in refused(client, **body)


@pytest.mark.parametrize(
    "body",
    [
        {"pairs": {"hyp": "a cat", "refs": ["a dog"]}, "metrics": ["emd"]},
        {"pairs": [{"hyp": "a cat", "refs": "a dog"}], "metrics": "emd"},
        {"pairs": [{"hyp": "a cat", "ref": "a dog"}], "metric": {"name": "emd"}},
        {"pairs": [{"prediction": "a cat", "reference": "a dog"}], "metric": "emd:transport"},
        {"hyps": ["a cat"], "refs": ["a dog"], "metric": "emd"},
        {"hyps": ["a cat"], "refs": [["a dog"]], "metric": "emd"},
        {"hyps": "a cat", "refs": "a dog", "metric": "emd"},
        {"hyp": "a cat", "ref": "a dog", "metric": "emd"},
        {"predictions": ["a cat"], "references": ["a dog"], "metric": "emd"},
    ],
)
def test_what_is_meant_is_taken(client: TestClient, body: dict[str, Any]) -> None:
    pair = {"hyp": "a cat", "refs": ["a dog"]}
    assert ask(client, **body) == ask(client, pairs=[pair], metrics=[{"name": "emd"}])


def test_references_of_one_hypothesis_and_of_several(client: TestClient) -> None:
    one = ask(client, hyp="a cat", refs=["a dog", "a cat"], metric="emd")["metrics"][0]
    assert one["references"] == [1]
    two = ask(client, hyps=["a cat", "b"], refs=["a dog", ["c", "b"]], metric="emd")["metrics"][0]
    assert two["references"] == [0, 1]


def test_ids_come_back(client: TestClient) -> None:
    pairs: list[dict[str, Any]] = [{**PAIRS[0], "id": "a-1"}, PAIRS[1], {**PAIRS[2], "id": 7}]
    answer = ask(client, pairs=pairs, metric="bleu", id="run 3")
    assert (answer["id"], answer["ids"]) == ("run 3", ["a-1", None, 7])
    assert "id" not in ask(client, pairs=PAIRS) | ask(client, "/api/explain", hyp="a", ref="b")
    assert ask(client, hyps=["a", "b"], refs=["a", "c"], ids=["x", "y"])["ids"] == ["x", "y"]
    assert ask(client, "/api/explain", hyp="a", ref="b", id="x")["id"] == "x"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"", 422),
        (b"[]", 422),
        (b"\xff\xfe", 400),
        (b"[" * 15_000, 400),
        (b'{"pairs": ' + b"1" * 5000 + b"}", 400),
        (b'{"pairs": ' + b"[" * 9000 + b"]" * 9000 + b"}", 400),
        (
            b'{"pairs": [{"hyp": "a", "refs": ["b"]}],'
            b' "metrics": [{"name": "lazy-emd", "settings": {"hyp": ' + b"1" * 4000 + b"}}]}",
            422,
        ),
        (b'{"pairs": NaN}', 422),
        (b'{"pairs": [{"hyp": "a", "refs": ["\\ud800"]}]}', 422),
        (b'{"pairs": [{"hyp": "a", "refs": ["b"], "\\ud800": 1}]}', 422),
        (b'{"pairs": [{"hyp": "a", "refs": ["b"]}], "metrics": [{"name": "\\ud800"}]}', 422),
        (
            b'{"pairs": [{"hyp": "a", "refs": ["b"]}],'
            b' "metrics": [{"name": "lazy-emd", "settings": {"hyp": NaN}}]}',
            422,
        ),
        (
            b'{"pairs": [{"hyp": "a", "refs": ["b"]}],'
            b' "metrics": [{"name": "lazy-emd", "settings": {"hyp": 1e999}}]}',
            422,
        ),
        (b'{"pairs": [{"hyp": "\\u0000\\u0001\\u202e", "refs": ["b\\u0000"]}]}', 200),
    ],
)
def test_odd_bytes_are_no_fault_of_ours(client: TestClient, body: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/api/score", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert not FOREIGN.search(answer.json()["error"]), answer.text


def test_what_is_no_json_is_not_read_as_such(client: TestClient) -> None:
    """A form of another site could send it without asking first."""
    body = json.dumps({"pairs": PAIRS}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = client.post("/api/score", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 422


def test_paths_and_methods_that_are_not_there(client: TestClient) -> None:
    assert client.get("/api/nothing").status_code == 404
    assert client.get("/api/score").status_code == 405
    assert client.get("/%2e%2e/etc/passwd").status_code == 404
    for method, path, message in (
        ("GET", "/api/nothing", "there is no /api/nothing; /docs lists what there is"),
        ("GET", "/api/score", "/api/score does not take GET; /docs says what it takes"),
        (
            "POST",
            "/api/file?output=xml",
            'output="xml": must be one of json, csv, tsv, jsonl, progress',
        ),
        ("GET", "/health?check=x", 'check="x": must be one of live, ready'),
    ):
        assert client.request(method, path).json() == {"error": message}


FILES = {
    "data.csv": 'hyp,ref\nthe boy in a coat,a boy wears a coat\n"three cats, asleep",three cats\n',
    "data.TSV": "prediction\treference\nthe boy in a coat\ta boy wears a coat\n"
    "three cats, asleep\tthree cats\n",
    "data.jsonl": '{"hyp": "the boy in a coat", "refs": ["a boy wears a coat"]}\n'
    '{"mt": "three cats, asleep", "ref": "three cats"}\n',
}
HYPS, REFS = ["the boy in a coat", "three cats, asleep"], ["a boy wears a coat", "three cats"]


def parquet_bytes(**columns: Any) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


def uploads() -> list[tuple[dict[str, Any], bytes]]:
    """The same texts in every way in which they can be sent."""
    plain = [({"name": name}, text.encode()) for name, text in FILES.items()]
    zipped = [({"name": one["name"] + ".gz"}, gzip.compress(content)) for one, content in plain]
    hyps, refs = ("\n".join(texts).encode() + b"\n" for texts in (HYPS, REFS))
    packed = gzip.compress(refs)
    sizes = [len(hyps), len(refs)], [len(hyps), len(packed)]
    wide = FILES["data.csv"].replace("boy", "böy").encode("cp1252")
    return [
        *plain,
        *zipped,
        ({"format": "csv"}, FILES["data.csv"].encode()),
        ({"name": "data.csv", "encoding": "cp1252"}, wide.replace("ö".encode("cp1252"), b"o")),
        ({"name": "data.csv"}, FILES["data.csv"].encode("utf-16")),
        ({"name": "x.parquet"}, parquet_bytes(hyp=HYPS, refs=[[ref] for ref in REFS])),
        ({"name": "x.parquet.gz"}, gzip.compress(parquet_bytes(output=HYPS, gold=REFS))),
        ({"name": ["hyp.txt", "ref.txt"], "size": sizes[0]}, hyps + refs),
        ({"name": ["hyp.de", "ref.txt.gz"], "size": sizes[1]}, hyps + packed),
        (
            {"name": "data.csv", "hyp_column": "a", "ref_column": "b"},
            FILES["data.csv"].replace("hyp,ref", "a,b").encode(),
        ),
    ]


@pytest.mark.parametrize("upload", uploads(), ids=lambda upload: str(upload[0]))
def test_files_of_every_kind(client: TestClient, upload: tuple[dict[str, Any], bytes]) -> None:
    options, content = upload
    metrics = ["bleu", '{"name": "lazy-emd", "settings": {"hyp": 0.5}}']
    answer = client.post("/api/file", params={**options, "metric": metrics}, content=content)
    assert answer.status_code == 200, answer.text
    pairs = [{"hyp": hyp, "refs": [ref]} for hyp, ref in zip(HYPS, REFS, strict=True)]
    told = [{"segment": k, **pair} for k, pair in enumerate(pairs, 1)]
    assert answer.json()["pairs"] == told
    same = ask(client, pairs=pairs, metrics=[{"name": "bleu"}, json.loads(metrics[1])])
    assert answer.json()["metrics"] == same["metrics"]


def test_ids_and_systems_of_a_file_are_kept(client: TestClient) -> None:
    ids = [datetime.date(2026, 1, 2), datetime.date(2026, 1, 3)]
    table = parquet_bytes(hyp=HYPS, ref=REFS, id=ids, system=["a", "b"])
    options = {"name": "x.parquet", "metric": "bleu"}
    pairs = client.post("/api/file", params=options, content=table).json()["pairs"]
    assert [(one["segment"], one["id"], one["system"]) for one in pairs] == [
        (1, "2026-01-02", "a"),
        (1, "2026-01-03", "b"),
    ]
    written = client.post("/api/file", params={**options, "output": "csv"}, content=table).text
    assert written.startswith("segment,system,id,bleu:score,bleu:reference,flags\n1,a,2026-01-02,")


def test_an_id_of_half_a_character_is_written(client: TestClient) -> None:
    line = b'{"hyp": "a", "ref": "b", "id": "x\\ud800"}'
    for output in ("json", "csv"):
        options = {"metric": "bleu", "output": output}
        answer = client.post("/api/file", params=options, content=line)
        assert answer.status_code == 200
        assert "x?" in answer.text


def test_results_as_files(client: TestClient) -> None:
    asked = {"format": "csv", "metric": ["emd", "emd"]}
    tables = {}
    for kind in ("csv", "tsv", "jsonl"):
        answer = client.post(
            "/api/file", params={**asked, "output": kind}, content=FILES["data.csv"].encode()
        )
        assert answer.status_code == 200, answer.text
        assert f'filename="scores.{kind}"' in answer.headers["content-disposition"]
        tables[kind] = answer.text
    lines = [json.loads(line) for line in tables["jsonl"].splitlines()]
    assert [line["segment"] for line in lines] == [1, 2]
    assert [line["emd:reference"] for line in lines] == [1, 1]  # from 1, as segments
    assert lines[0]["emd:transport"] == lines[0]["emd (2):transport"] > 0
    for kind, delimiter in (("csv", ","), ("tsv", "\t")):
        rows = list(csv.DictReader(io.StringIO(tables[kind]), delimiter=delimiter))
        assert list(rows[0]) == list(lines[0])
        assert [float(r["emd:transport"]) for r in rows] == [x["emd:transport"] for x in lines]


def test_a_large_file_is_scored_in_parts_and_as_a_whole(client: TestClient) -> None:
    """The score of all rows is that of the corpus, and not a mean of parts."""
    hyps = [f"the cat number {k} sat on mat {k % 7}" for k in range(400)]
    refs = [f"a cat, its number {k}, sat on the mat {k % 5}" for k in range(400)]
    table = "hyp\tref\n" + "".join(f"{h}\t{r}\n" for h, r in zip(hyps, refs, strict=True))
    options = {"name": "large.tsv", "metric": ["bleu", "emd"], "output": "progress"}
    assert len(table) > 20_000  # more than the body of other requests may have
    answer = client.post("/api/file", params=options, content=table.encode())
    *progress, whole = [json.loads(line) for line in answer.text.splitlines()]
    done = [one["done"] for one in progress]
    assert done == sorted(set(done))
    assert (done[0], done[-1]) == (0, 400)
    assert len(done) > 5
    assert {one["rows"] for one in progress} == {400}
    assert len(whole["pairs"]) == 400
    for answered, settings in zip(whole["metrics"], ({}, {"encoder": "hashed"}), strict=True):
        local = freight.load(answered["metric"], **settings).score(hyps, refs)
        assert answered["scores"] == {name: numbers(x) for name, x in local.segments.items()}
        assert answered["system"] == pytest.approx(local.system, rel=1e-12)


def test_an_error_in_the_middle_of_a_file_is_told(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    score = Worker.score

    async def fail_at_the_second(self: Worker, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise QueueFull("too many", 10_000)
        return await score(self, *arguments)

    monkeypatch.setattr(Worker, "score", fail_at_the_second)
    table = "hyp\tref\n" + "a cat\ta dog\n" * 300
    options = {"name": "x.tsv", "metric": "bleu", "output": "progress"}
    answer = client.post("/api/file", params=options, content=table.encode())
    assert answer.status_code == 200
    assert json.loads(answer.text.splitlines()[-1]) == {"error": "too many"}
    calls.clear()
    answer = client.post("/api/file", params={**options, "output": "json"}, content=table.encode())
    assert (answer.status_code, answer.json()) == (429, {"error": "too many"})


def test_a_queue_that_is_full_for_a_moment_is_waited_for(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    score = Worker.score

    async def be_full_once(self: Worker, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise QueueFull("too many", 0.001)
        return await score(self, *arguments)

    monkeypatch.setattr(Worker, "score", be_full_once)
    options = {"name": "x.csv", "metric": "bleu"}
    answer = client.post("/api/file", params=options, content=FILES["data.csv"].encode())
    assert answer.status_code == 200
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("options", "content", "culprit"),
    [
        ({}, b"", "file.jsonl is empty"),
        ({"name": "x.csv"}, b"", "x.csv is empty"),
        ({"name": "x.csv"}, b"hyp,ref\n", "x.csv is empty"),
        ({"name": "x.csv"}, b"a,b\n1,2\n", "row 1 of x.csv has no column 'hyp'; it has a, b"),
        ({"name": "x.csv"}, b"hyp,hyp\n1,2\n", "two columns named 'hyp'"),
        ({"name": "x.csv"}, b"hyp,ref\n1\n", "line 2 of x.csv has 1 cells, the heading 2"),
        ({"name": "x.csv"}, b"hyp,ref\na\x00,b\n\xff,b\n", "line 3 of x.csv is not utf-8 (byte"),
        (
            {"name": "x.tsv"},
            b"hyp\tref\n" + b"a\tb\n" * 501,
            "x.tsv has 501 rows; send at most 500",
        ),
        ({"name": "x.tsv"}, b"hyp\tref\n" + b"a" * 1001 + b"\tb\n", "row 1: hyp has 1,001 char"),
        ({}, b'{"hyp": "a"}', "has no column 'ref'"),
        ({}, b'{"hyp": "a", "refs": []}', "row 1 of file.jsonl has no reference"),
        ({}, json.dumps({"hyp": "a", "refs": ["b"] * 20}).encode(), "row 1 has 20 references"),
        ({}, b'{"hyp": "a", "ref": 1}', "row 1 of file.jsonl: ref is 1, not a text"),
        ({}, b'{"hyp": "a", "ref": "\\ud800"}', "half a character"),
        ({}, b"[1]", "line 1 of file.jsonl is not an object"),
        ({}, b"{", "line 1 of file.jsonl is not JSON"),
        ({}, b"[" * 15_000, "nested too deeply"),
        ({}, b'{"hyp": "a", "ref": ' + b"1" * 5000 + b"}", "more than 4,300 digits"),
        ({"name": "x.parquet"}, b"PAR1 and no more", "x.parquet is not a whole Parquet file"),
        ({"name": "x.csv.gz"}, b"hyp,ref\na,b\n", "x.csv.gz is not a whole gzip file"),
        ({"name": "x.txt"}, b"a\nb\n", "x.txt has no references; give a file of them, or a table"),
        ({"name": ["x.txt", "y.txt"]}, b"a\nb\n", "2 names of files, 0 sizes and 4 bytes"),
        ({"name": ["x", "y"], "size": [3, 3]}, b"a\nb\n", "give the size of each file"),
        ({"name": ["x", "y"], "size": [-1, 5]}, b"a\nb\n", "give the size of each file"),
        (
            {"name": ["x.txt", "y.txt"], "size": [4, 2]},
            b"a\nb\nc\n",
            "x.txt has 2 segments but y.txt",
        ),
        ({"encoding": "utf-16"}, b"{}\n", "line 1 of file.jsonl is not utf-16 (UTF-16 stream does"),
        ({"encoding": "zlib"}, b"{}", 'encoding="zlib": must be one of utf-8, utf-16'),
        ({"format": "xls"}, b"", 'format="xls": must be one of csv, tsv, jsonl, parquet'),
        ({"size": "x"}, b"", 'size[0] is "x", not a whole number'),
        ({"metric": ["bleu"] * 9}, b"", "metric has 9 entries; send at most 8"),
    ],
)
def test_files_that_cannot_be_used(
    client: TestClient, options: dict[str, Any], content: bytes, culprit: str
) -> None:
    answer = client.post("/api/file", params=options, content=content)
    assert answer.status_code == 422, answer.text
    assert culprit in answer.json()["error"]
    assert "/" not in answer.json()["error"].replace("/docs", "")  # no path of ours


def test_files_that_are_small_and_become_large_are_refused(client: TestClient) -> None:
    """Memory follows the limits, whatever a file unpacks to."""
    row = b'{"hyp": "a", "ref": "b"}\n'
    lines = gzip.compress(row * 400_000)
    answer = client.post("/api/file", params={"name": "x.jsonl.gz"}, content=lines)
    assert answer.status_code == 413
    assert "once it is unpacked" in answer.json()["error"]
    for columns, message in (
        ({"hyp": ["a"] * 600, "ref": ["b"] * 600}, "has 600 rows"),
        ({"hyp": ["x" * 100_000] * 400, "ref": ["b"] * 400}, "has a text of more than 4,000 bytes"),
        ({"hyp": ["a"], "refs": [["b"] * 1_000_000]}, "bytes are read"),
    ):
        table = parquet_bytes(**columns)
        assert len(table) < 250_000
        answer = client.post("/api/file", params={"name": "x.parquet"}, content=table)
        assert answer.status_code == 422
        assert message in answer.json()["error"]
    answer = client.post("/api/file", params={"name": "x.csv"}, content=b"x" * 250_001)
    assert answer.status_code == 413
    assert "a file has at most 250,000 bytes" in answer.json()["error"]


@pytest.mark.parametrize("metric", ["{", "{}x", '{"name": 1}', '{"more": 1}', '{"name": "x"}'])
def test_metrics_of_a_file_that_cannot_be_used(client: TestClient, metric: str) -> None:
    answer = client.post(
        "/api/file", params={"metric": metric}, content=FILES["data.jsonl"].encode()
    )
    assert answer.status_code == 422
    assert "metric" in answer.json()["error"]


def test_health_and_counters(client: TestClient) -> None:
    assert client.get("/health").json() == {"live": True, "ready": True, "state": "ready"}
    assert client.get("/health?check=live").status_code == 200
    ask(client, pairs=PAIRS)
    client.get("/no/such/path/at/all")
    text = client.get("/metrics").text
    for name in (
        'freight_requests_total{method="POST",route="/api/score",status="200"}',
        'freight_request_seconds_bucket{le="0.1",route="/api/score"}',
        "freight_pairs_scored_total",
        "freight_batch_pairs_bucket",
        "freight_batch_requests_count",
        "freight_queue_pairs 0.0",
        'freight_refusals_total{status="422"}',
    ):
        assert name in text
    assert "/no/such/path" not in text


GERMAN = {
    "hyp": "Der Hund schläft heute den ganzen Tag im Garten.",
    "refs": ["Der Hund liegt heute im Garten und schläft den ganzen Tag."],
}


def test_the_language_of_the_references_chooses_the_encoder(
    light: ServedModels, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if hashed vectors were of English words, and one-hot ones of any."""
    known = {"hashed": frozenset({"en"}), "one-hot": frozenset({"en", "de"})}
    by_identity = {find_encoder(name).identity: known[name] for name in known}
    monkeypatch.setattr(models_module, "languages_of", lambda one: by_identity[one.identity])
    note = "language: German; encoder: one-hot"
    [answer] = ask(client, pairs=[GERMAN], metric="emd")["metrics"]
    [named] = ask(client, pairs=[GERMAN], metric={"name": "emd", "encoder": "one-hot"})["metrics"]
    assert answer.pop("chosen") == {"encoder": "one-hot", "lang": "de"}
    assert named.pop("chosen") == {"encoder": "one-hot", "lang": None}
    assert answer == named
    assert (answer["note"], "one-hot" in answer["signature"]) == (note, True)
    explained = ask(client, "/api/explain", **GERMAN, metric="emd")
    assert (explained["note"], explained["scores"]["transport"]) == (
        note,
        answer["scores"]["transport"][0],
    )
    fragment = client.post("/api/explain/fragment", json={**GERMAN, "metric": "emd"})
    assert fragment.headers["Freight-Note"] == note
    assert json.loads(fragment.headers["Freight-Chosen"]) == [{"encoder": "one-hot", "lang": "de"}]
    table = f"hyp,ref\n{GERMAN['hyp']},{GERMAN['refs'][0]}\n".encode()
    file = client.post("/api/file", params={"format": "csv", "metric": "emd"}, content=table)
    assert file.json()["metrics"] == [{**answer, "chosen": {"encoder": "one-hot", "lang": "de"}}]
    [unread] = ask(client, pairs=[GERMAN], metric={"name": "emd", "encoder": "hashed"})["metrics"]
    assert unread["note"] == "the encoder hashed does not read German: its scores say little"
    [english] = ask(client, pairs=PAIRS[:1], metric="emd")["metrics"]
    assert "note" not in english
    [plain] = ask(client, pairs=[GERMAN], metric="bleu")["metrics"]
    assert "note" not in plain
    by_identity[find_encoder("one-hot").identity] = frozenset({"en"})
    assert refused(client, pairs=[GERMAN], metric="emd") == (
        "the references are in German, which the encoder of emd does not read; name one, encoder"
        " hashed for what there is, or start the service with --encoder multilingual"
    )


def test_german_is_scored_as_on_the_command_line() -> None:
    need_encoder("embedded")
    need_encoder("multilingual")
    models = ServedModels(load_encoders([], 512))
    assert list(models.encoders) == [
        "embedded",
        "distilled",
        "multilingual",
        "distilled:multilingual",
    ]
    models.metrics = {name: models.metrics[name] for name in ("freight", "lazy-emd", "wmd")}
    with open_client(models, Limits(seconds=600)) as client:
        answers = ask(client, pairs=[GERMAN], metrics=list(models.metrics))["metrics"]
    for answer, encoder in zip(
        answers, ("multilingual", "multilingual", "distilled:multilingual"), strict=True
    ):
        local = freight.load(answer["metric"], lang="de")
        expected = local.score([str(GERMAN["hyp"])], [list(GERMAN["refs"])])
        primary = expected.columns[0].name
        assert answer["scores"][primary] == pytest.approx(list(expected[primary]), abs=1e-5)
        assert answer["flags"] == [[]]
        assert answer["note"] == f"language: German; encoder: {encoder}"
        assert answer["citation"] == expected.citation
        assert answer.get("meaning", "") == expected.meaning


def test_a_score_comes_with_its_scale_and_its_citation() -> None:
    need_encoder("embedded")
    models = ServedModels(load_encoders(["embedded"], 512))
    with open_client(models, Limits(seconds=600)) as client:
        pairs = [{"hyp": "The boy in a coat.", "refs": ["The young man in a slicker."]}]
        answers = ask(client, pairs=pairs, metrics=["freight", "chrf"])["metrics"]
        explained = ask(client, "/api/explain", **pairs[0])
        page = client.post("/api/explain/fragment", json=pairs[0]).text
        several = {"hyp": "a cat", "refs": ["the dog", "a cat"]}
        [best] = ask(client, pairs=[several])["metrics"]
    for answer in answers:
        local = freight.score(["The boy in a coat."], [pairs[0]["refs"][0]], answer["metric"])
        assert answer["meaning"] == local.meaning != ""
        assert answer["citation"] == local.citation
        assert local.scale is not None
        assert answer["scale"] == local.scale.record(local.system[local.columns[0].name])
    assert (explained["meaning"], explained["citation"]) == (
        answers[0]["meaning"],
        answers[0]["citation"],
    )
    assert answers[0]["meaning"] in page
    assert answers[0]["citation"] in page
    assert "meaning" not in best, "the better of two references is no such score"


def test_the_form_knows_the_defaults_of_each_language(client: TestClient) -> None:
    metrics = {one["name"]: one for one in client.get("/api/metrics").json()["metrics"]}
    (hyp,) = [one for one in metrics["lazy-emd"]["parameters"] if one["name"] == "hyp"]
    assert hyp["default"] == 0.23
    assert hyp["by_language"] == {"en": 0.23, "zh": 0.018, "other": 0.009}
    (recall,) = [one for one in metrics["freight"]["parameters"] if one["name"] == "recall"]
    assert recall["by_language"] == {"other": 0.8}
    assert "by_language" not in metrics["emd"]["parameters"][-1]


HOSTILE = '<script>alert("owned")</script><img src=x onerror=alert(1)>&amp;\x00'


def test_explanations_are_those_of_the_library(client: TestClient) -> None:
    pair: dict[str, Any] = {"hyp": "three cats slept", "refs": ["two dogs slept", "three cats ran"]}
    for name in ("lazy-emd", "freight", "std", "bert-score"):
        record = ask(client, "/api/explain", **pair, metric={"name": name})
        local: Any = freight.load(name, encoder="hashed").explain(pair["hyp"], pair["refs"])
        assert record == json.loads(json.dumps(local.to_dict()))


def test_explanations_are_written_outside_the_event_loop(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks something else meanwhile would have to wait."""
    loops: list[bool] = []
    write = Explanation.to_dict

    def write_and_tell(self: Explanation) -> Any:
        loops.append(asyncio._get_running_loop() is not None)
        return write(self)

    monkeypatch.setattr(Explanation, "to_dict", write_and_tell)
    ask(client, "/api/explain", hyp="three cats slept", refs=["two dogs slept"])
    assert loops == [False]


def test_an_explanation_of_too_many_numbers_is_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair: dict[str, Any] = {
        "hyp": "three cats slept",
        "refs": ["two dogs"],
        "metric": {"name": "emd"},
    }
    monkeypatch.setattr(routes, "MOST_NUMBERS", 12)
    ask(client, "/api/explain", **pair)
    monkeypatch.setattr(routes, "MOST_NUMBERS", 11)
    assert "are 12 numbers" in refused(client, 413, "/api/explain", **pair)
    assert client.post("/api/explain/fragment", json=pair).status_code == 200


def test_explanations_as_fragments(client: TestClient) -> None:
    pair = {"hyp": f"three cats {HOSTILE}", "refs": [f"two dogs {HOSTILE}"]}
    others = [None, {"hyp": "cats"}, {"metric": {"name": "emd"}}, {"hyp": "x", "metric": {}}]
    for other in others:
        body = {**pair, "metric": {"name": "lazy-emd"}, "other": other}
        answer = client.post("/api/explain/fragment", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "fx-" in answer.text
        assert "<script" not in answer.text
        assert "<img" not in answer.text
        assert "&lt;" in answer.text
    assert "fx-" in client.get("/explanation.css").text


def test_explanations_that_cannot_be_had(client: TestClient) -> None:
    pair: dict[str, Any] = {"hyp": "a cat", "refs": ["a dog"]}
    for path in ("/api/explain", "/api/explain/fragment"):
        assert "moves nothing" in refused(client, path=path, **pair, metric={"name": "bleu"})
        assert "--idf" in refused(client, path=path, **pair, metric={"name": "yisi-1"})
    long = {"hyp": "x" * 1001}
    assert "characters" in refused(client, path="/api/explain/fragment", **pair, other=long)


def test_texts_for_idf_make_metrics_that_weigh_by_it_usable() -> None:
    texts = ["a cat sat", "a dog ran", "a cat ran", "the end"]
    models = ServedModels(load_encoders(["hashed"], 256), idf_texts=texts)
    local = freight.load("yisi-1", encoder="hashed").fit(texts)
    expected = local.score(["a cat ran home"], ["a dog ran home"])
    with open_client(models, Limits(seconds=300)) as client:
        pairs = [{"hyp": "a cat ran home", "refs": ["a dog ran home"]}]
        content = ask(client, pairs=pairs, metrics=[{"name": "yisi-1"}, {"name": "mover-score"}])
    assert content["metrics"][0]["scores"]["f"] == expected["f"].tolist()


def test_folders_of_encoders_are_not_told() -> None:
    named = load_encoders(["mine=embedded", "hashed"], 256)
    assert [one.name for one in named] == ["mine", "hashed"]
    with pytest.raises(freight.InvalidInput, match="two encoders are called hashed"):
        load_encoders(["hashed", "hashed=one-hot"], 256)
    with pytest.raises(freight.InvalidInput, match="there is no folder"):
        load_encoders(["/nowhere/at/all"], 256)


def test_a_metric_of_ones_own_is_offered_by_its_name() -> None:
    own = ["examples/own_metric.py:reach"]
    models = ServedModels(load_encoders(["hashed"], 256), own_metrics=own)
    with open_client(models) as client:
        offered = {one["name"]: one for one in client.get("/api/metrics").json()["metrics"]}
        assert [c["name"] for c in offered["reach"]["columns"]] == ["objective", "transport"]
        [answer] = ask(client, pairs=PAIRS, metrics=[{"name": "reach"}])["metrics"]
        assert answer["scores"]["objective"][2] == pytest.approx(0.0, abs=1e-3)


def test_an_adapter_is_offered_by_its_name_and_changes_scores(tiny_model: Path) -> None:
    adapter = made_adapter(tiny_model)
    models = ServedModels(load_encoders(["hashed", f"tiny={tiny_model}"], 256), adapters=[adapter])
    models.metrics = {name: models.metrics[name] for name in ("freight", "bert-score")}
    with open_client(models, Limits(seconds=300)) as client:
        listed = {one["name"]: one for one in client.get("/api/metrics").json()["metrics"]}
        settings = {"layer": [1, 2], "floor": 0.1}
        offered = {"name": "mine", "encoder": "tiny", "settings": settings}
        assert listed["freight"]["adapters"] == [offered]
        assert listed["bert-score"]["adapters"] == []
        metrics = [
            {"name": "freight", "encoder": "tiny"},
            {"name": "freight", "adapter": "mine"},
            {"name": "freight", "adapter": "mine", "settings": {"greedy": 0.9}},
        ]
        answers = ask(client, pairs=PAIRS, metrics=metrics)["metrics"]
        hyps, refs = [str(one["hyp"]) for one in PAIRS], [one["refs"] for one in PAIRS]
        scores = [one["scores"]["score"][0] for one in answers]
        expected = [
            freight.load("freight", encoder=str(tiny_model), **more).score(hyps, refs)["score"][0]
            for more in ({}, {"adapter": adapter}, {"adapter": adapter, "greedy": 0.9})
        ]
        assert scores == pytest.approx(expected, abs=1e-5)
        assert len({round(score, 4) for score in scores}) == 3
        assert "+mine-" in answers[1]["signature"]
        assert "+mine-" not in answers[0]["signature"]
        for wrong, message in (
            ({"adapter": "other"}, "'other' is not served; there is mine"),
            ({"name": "bert-score", "adapter": "mine"}, "it sets 'floor'"),
            ({"adapter": "mine", "encoder": "hashed"}, "for tiny, not for hashed"),
        ):
            assert message in refused(client, pairs=PAIRS, metrics=[wrong])


def test_an_adapter_without_its_encoder_is_not_served(tiny_model: Path) -> None:
    adapter = made_adapter(tiny_model)
    with pytest.raises(freight.InvalidInput, match=r"mine is for tiny .* give that with --encoder"):
        ServedModels(load_encoders(["hashed"], 256), adapters=[adapter])
