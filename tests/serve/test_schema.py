"""Requests made up from the schema: whatever they are, the fault is not ours."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from serve.running import running

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]
PATHS = {
    "/api/metrics",
    "/api/encoders",
    "/api/score",
    "/api/explain",
    "/api/explain/fragment",
    "/api/file",
    "/health",
    "/metrics",
}
PLAIN = {"/api/metrics", "/api/encoders", "/metrics"}  # nothing in them can be wrong


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    with running("--encoder", "hashed", "--characters", "300") as service:
        yield schemathesis.openapi.from_url(f"{service.url}/openapi.json")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_is_answered_by_a_fault(schema: Any, mode: GenerationMode) -> None:
    operations = [found.ok() for found in schema.get_all_operations()]
    assert {operation.path for operation in operations} == PATHS
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and operation.path in PLAIN:
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
        def check(case: Any) -> None:
            case.call_and_validate(checks=CHECKS)

        check()
