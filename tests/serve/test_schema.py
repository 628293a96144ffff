"""Requests generated from the schema: whatever they are, the service does not fail."""

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
WITHOUT_INPUT = {"/api/metrics", "/api/encoders", "/metrics"}


@pytest.fixture(scope="module")
def schema(service: str) -> Any:
    return schemathesis.openapi.from_url(f"{service}/openapi.json")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_makes_the_service_fail(schema: Any, mode: GenerationMode) -> None:
    operations = [operation.ok() for operation in schema.get_all_operations()]
    assert {operation.path for operation in operations} == PATHS
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and operation.path in WITHOUT_INPUT:
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
        def check(case: Any) -> None:
            case.call_and_validate(checks=CHECKS)

        check()
