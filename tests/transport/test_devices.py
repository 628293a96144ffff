"""Work on a stream of its own sees what was queued, and items are drawn ahead of their use."""

from collections.abc import Iterator

import pytest
import torch

from freight.transport.devices import on_own_stream, read_ahead


@pytest.mark.gpu
def test_work_on_its_own_stream_sees_what_was_queued_before() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    device = torch.device("cuda")
    numbers = torch.ones(1 << 20, device=device).cumsum(0)
    work = on_own_stream(device, lambda: (torch.cuda.current_stream(), float(numbers.sum())))
    stream, total = work()
    assert stream != torch.cuda.current_stream()
    assert total == pytest.approx((1 << 20) * ((1 << 20) + 1) / 2, rel=1e-4)


@pytest.mark.parametrize(("room", "ahead"), [(0, 0), (1, 1), (3, 3)])
def test_as_many_items_are_drawn_ahead_as_there_is_room_for(room: int, ahead: int) -> None:
    drawn: list[int] = []

    def draw() -> Iterator[int]:
        for item in range(6):
            drawn.append(item)
            yield item

    used = []
    for item in read_ahead(draw(), room):
        assert len(drawn) == min(item + 1 + ahead, 6)
        used.append(item)
    assert used == list(range(6))


def test_large_items_take_more_room() -> None:
    sizes = [2, 2, 5, 1]
    drawn: list[int] = []

    def draw() -> Iterator[int]:
        for size in sizes:
            drawn.append(size)
            yield size

    ahead = [len(drawn) for _ in read_ahead(draw(), 4, lambda size: size)]
    assert ahead == [3, 3, 3, 4]
