# SPDX-License-Identifier: Apache-2.0
"""Trainings in MLflow: params, metrics by step, the account and the model.

    import mlflow
    from cafetiere.spark.mlflow import log_fit

    with mlflow.start_run():
        model = log_fit(estimator, estimator.fit(train))

Needs the package mlflow or mlflow-skinny, which the wheel does not bring.
"""

import contextlib
import csv
import json
import pathlib
import tempfile
import time
from dataclasses import asdict, fields

try:
    import mlflow
    from mlflow.entities import Metric, Param, RunTag
except ImportError as missing:
    raise ImportError("trainings are logged by MLflow: pip install mlflow-skinny") from missing

# What MLflow takes in a call.
_MOST_METRICS = 1000
_MOST_PARAMS = 100
_LONGEST_PARAM = 500
_NOT_PARAMS = {"account", "partitions", "rows_per_epoch", "sha256", "engine", "events_by"}


def log_fit(estimator, model, folder: str = "model"):
    """Logs a training to the active run of MLflow, or to a new one, and returns the model.

    Of the estimator the params that are set; of the model what its summary tells, a metric for
    each number of each event at its step and time, the account as ``core_hours.PART`` and as
    ``account.json``, the events, and below ``folder`` the net's prototxt and its weights. Weights
    in a file of a cluster (``weightsFile``) are named by a tag instead. Of the nets of keys
    (``groupCol``) there is ``keys.csv``: rows, loss or error of each. Their weights are not logged.
    """
    with contextlib.ExitStack() as ends:  # a run that begins here, as failed where logging fails
        run = mlflow.active_run() or ends.enter_context(mlflow.start_run())
        _log(run.info.run_id, estimator, model, folder)
    return model


def _log(run_id: str, estimator, model, folder: str) -> None:
    summary, course = model.summary, model.summary.course
    client = mlflow.MlflowClient()
    params = _params(estimator)
    for first in range(0, len(params), _MOST_PARAMS):
        client.log_batch(run_id, params=params[first : first + _MOST_PARAMS])
    metrics = _metrics(summary, course.events)
    for first in range(0, len(metrics), _MOST_METRICS):
        client.log_batch(run_id, metrics=metrics[first : first + _MOST_METRICS])
    tags = {"sha256": summary.sha256, "engine": summary.engine}
    with tempfile.TemporaryDirectory() as told:
        place = pathlib.Path(told)
        _write_course(place, estimator, summary, course)
        if _is_keyed(model):
            _write_keys(place, model)
        else:
            net = getattr(model, "caffeModel", model)
            tags["weights_file"] = net.weightsFile
            _write_net(place / folder, net)
        client.log_artifacts(run_id, place)
    tags = [RunTag(f"cafetiere.{name}", value) for name, value in tags.items() if value]
    client.log_batch(run_id, tags=tags)


def _params(estimator) -> list:
    """The values that the user has set, but for those that are files' texts."""
    params = []
    for param in estimator.params:
        value = str(estimator.getOrDefault(param)) if estimator.isSet(param) else ""
        if value and "\n" not in value and len(value) <= _LONGEST_PARAM:  # prototxt is in files
            params.append(Param(param.name, value))
    return params


def _metrics(summary, events: list) -> list:
    now = time.time()
    begin = now - summary.seconds
    metrics, seconds = [], 0.0
    for event in events:
        seconds = event.get("seconds", seconds)
        step = event.get("step", event.get("tasks", summary.steps))
        at = int((begin + seconds) * 1000)
        if event["event"] == "progress":
            numbers = {name: event[name] for name in ("loss", "lr", "epoch", "rows_per_s")}
            numbers |= {name: event[name] for name in ("wait_data", "wait_comm")}
            numbers |= event.get("outputs", {})
        elif event["event"] == "keys":
            # Those that failed, too; "keys" are those with a net, at the end.
            numbers = {"keys_done": event["keys"], "keys_per_s": event["keys_per_s"]}
        elif event["event"] == "test":
            numbers = {f"{event['net']}.{name}": n for name, n in event["outputs"].items()}
        else:
            continue
        metrics += [Metric(name, n, at, step) for name, n in numbers.items() if n is not None]
    end = {field.name: getattr(summary, field.name) for field in fields(summary)}
    end |= {f"core_hours.{name}": n for name, n in asdict(summary.account.core_hours).items()}
    if summary.account.price_per_core_hour > 0:
        end["cost"] = summary.account.cost
    return metrics + [
        Metric(name, float(n), int(now * 1000), summary.steps)
        for name, n in end.items()
        if name not in _NOT_PARAMS | {"loss"} and isinstance(n, (int, float))
    ]


def _is_keyed(model) -> bool:
    return model.hasParam("groupCol") and bool(model.getOrDefault("groupCol"))


def _write_course(place: pathlib.Path, estimator, summary, course) -> None:
    (place / "account.json").write_text(json.dumps(asdict(summary.account), indent=2))
    (place / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in course.events))
    (place / "summary.json").write_text(json.dumps(course.result, indent=2))
    if estimator.hasParam("solver"):
        (place / "solver.prototxt").write_text(estimator.getOrDefault("solver"))


def _write_keys(place: pathlib.Path, model) -> None:
    with (place / "keys.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["key", "rows", "loss", "error"])
        nets = model.nets
        key = nets.columns[0].replace("`", "``")
        lines.writerows(nets.select(f"`{key}`", "rows", "loss", "error").toLocalIterator())


def _write_net(place: pathlib.Path, net) -> None:
    place.mkdir(parents=True)
    (place / "net.prototxt").write_text(net.getNet())
    if not net.weightsFile:
        (place / "net.caffemodel").write_bytes(net.weights)
