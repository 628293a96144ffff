"""What it costs to move a unit of mass between two vectors, for padded batches."""

from torch import Tensor
from torch.nn.functional import normalize


def cosine(hyp: Tensor, ref: Tensor) -> Tensor:
    """1 - cosine similarity; a zero vector is as far as an orthogonal one."""
    return 1.0 - normalize(hyp, dim=-1) @ normalize(ref, dim=-1).mT


def squared_euclidean(hyp: Tensor, ref: Tensor) -> Tensor:
    """The squared distance between the points."""
    squares = hyp.square().sum(-1)[..., None] + ref.square().sum(-1)[..., None, :]
    return (squares - 2.0 * hyp @ ref.mT).clamp(min=0.0)
