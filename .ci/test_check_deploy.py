#!/usr/bin/env python3
"""Tests of check_deploy.py and deploy_schemas.py: what they read, and that they refuse what is wrong."""

import copy
import json
import unittest

import check_deploy as check
import deploy_schemas as schemas

POD = {
    "kind": "Deployment",
    "metadata": {"name": "a"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a", "more": "b"}},
            "spec": {
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "terminationGracePeriodSeconds": 90,
                "securityContext": {"runAsNonRoot": True},
                "containers": [{
                    "name": "engine",
                    "args": ["engine", "serve", "--state=/state/x", "--drain-timeout=60s"],
                    "ports": [{"name": "http", "containerPort": 1}],
                    "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
                    "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
                                        "capabilities": {"drop": ["ALL"]}},
                    "volumeMounts": [{"name": "state", "mountPath": "/state"}],
                }],
                "volumes": [{"name": "state", "emptyDir": {}}],
            },
        },
    },
}


def faults(change=lambda pod: None):
    pod = copy.deepcopy(POD)
    change(pod["spec"]["template"]["spec"])
    return list(check.check_pod(pod, pod["spec"]["template"]["metadata"], pod["spec"]["template"]["spec"]))


class Deploy(unittest.TestCase):
    def test_a_pod_that_fits_has_no_faults_and_each_change_has_one(self):
        self.assertEqual(faults(), [])
        for change, said in [
            (lambda spec: spec["securityContext"].clear(), "root"),
            (lambda spec: spec.update(automountServiceAccountToken=True), "Kubernetes"),
            (lambda spec: spec.update(enableServiceLinks=True), "options"),
            (lambda spec: spec["containers"][0]["securityContext"].update(readOnlyRootFilesystem=False), "confined"),
            (lambda spec: spec["containers"][0]["securityContext"].update(capabilities={"drop": []}), "confined"),
            (lambda spec: spec["volumes"].append({"name": "more"}), "more is mounted nowhere"),
            (lambda spec: spec["containers"][0]["volumeMounts"].append({"name": "b", "mountPath": "/b"}), "called b"),
            (lambda spec: spec["containers"][0]["args"].append("--keys=/keys"), "/keys is in no volume"),
            (lambda spec: spec["containers"][0]["args"].append("/statex/y"), "/statex/y is in no volume"),
            (lambda spec: spec.update(terminationGracePeriodSeconds=60), "killed"),
            (lambda spec: spec["containers"][0]["readinessProbe"]["httpGet"].update(port="web"), "called web"),
        ]:
            found = faults(change)
            self.assertEqual(len(found), 1, found)
            self.assertIn(said, found[0])

    def test_selectors_must_select(self):
        service = {"kind": "Service", "metadata": {"name": "s", "labels": {}}, "spec": {"selector": {"app": "a"}, "ports": []}}
        self.assertEqual(list(check.check_documents([POD, service])), [])
        self.assertIn("selects no pod", list(check.check_documents([POD, service | {"spec": {"selector": {"app": "b"}}}]))[0])
        self.assertIn("twice", list(check.check_documents([POD, POD]))[0])

    def test_permissions_of_a_server_are_read(self):
        text = 'A_MAY = {\n  publish = [\n    "x.*", "y"\n  ]\n  subscribe = ["z.>"]\n}\n'
        self.assertEqual(check.blocks(text), {"A_MAY": {"x.*", "y", "z.>"}})
        self.assertLessEqual({
            "COORDINATOR_MAY", "PROVER_MAY", "VERIFIER_MAY", "COLLECTOR_MAY", "SEQUENCER_MAY", "SOURCE_MAY", "OPERATOR_MAY",
        }, set(check.blocks(check.NATS_CONFIGURATION.read_text())))

    def test_schemas_of_kubernetes_carry_their_definitions(self):
        definitions = {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}, "c": {}}
        whole = schemas.with_own_definitions({"properties": {"x": {"$ref": "/api/_definitions.json#/$defs/a"}}}, definitions)
        self.assertEqual(whole["properties"]["x"]["$ref"], "#/$defs/a")
        self.assertEqual(set(whole["$defs"]), {"a", "b"})

    def test_schemas_of_custom_resources_refuse_unknown_fields(self):
        made = schemas.strict({
            "type": "object",
            "properties": {
                "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "free": {"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": True},
                "words": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        })
        self.assertIs(made["additionalProperties"], False)
        self.assertEqual(made["properties"]["port"]["type"], ["integer", "string"])
        self.assertNotIn("additionalProperties", made["properties"]["free"])
        self.assertNotIn("x-kubernetes", json.dumps(made))


if __name__ == "__main__":
    unittest.main()
