# SPDX-License-Identifier: Apache-2.0
"""The examples for Oozie and Kubernetes against their schemas: neither is started here."""

import manifests
import pytest


@pytest.fixture(scope="module")
def oozie(tmp_path_factory):
    return manifests.oozie_schemas(tmp_path_factory.mktemp("oozie"))


@pytest.fixture(scope="module")
def pods():
    return manifests.pod_validator()


@pytest.mark.parametrize("name", ["workflow.xml", "coordinator.xml"])
def test_oozie_documents_follow_their_schemas(oozie, name):
    assert manifests.oozie_faults(oozie, manifests.EXAMPLES / "oozie" / name) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("workflow.xml", "<mode>cluster</mode>", "<modus>cluster</modus>"),
        ("workflow.xml", '<ok to="test"/>', ""),
        ("coordinator.xml", "<app-path>", "<app-path/><app-path>"),
    ],
)
def test_what_is_wrong_in_them_is_found(oozie, tmp_path, name, right, wrong):
    text = (manifests.EXAMPLES / "oozie" / name).read_text()
    assert right in text
    (tmp_path / name).write_text(text.replace(right, wrong, 1))
    assert manifests.oozie_faults(oozie, tmp_path / name)


@pytest.mark.parametrize("name", ["driver.yaml", "executor.yaml"])
def test_pod_templates_follow_their_schema(pods, name, tmp_path):
    template = manifests.EXAMPLES / "kubernetes" / name
    assert manifests.pod_faults(pods, template) == []
    for right, wrong in (("mountPath:", "mountpath:"), ("kind: Pod", "kind: Pods")):
        (tmp_path / name).write_text(template.read_text().replace(right, wrong, 1))
        assert manifests.pod_faults(pods, tmp_path / name), wrong
