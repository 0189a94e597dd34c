from __future__ import annotations

import pytest

from extender.model.addresses import is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.10", "::1"])
def test_this_machine_has_one_name_and_the_loopback_addresses(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "example.com", "localhost.example.com", "0.0.0.0", "::", "10.0.0.1"])
def test_every_other_host_is_another_machine(host: str) -> None:
    assert not is_loopback(host)
