"""Write what the default metric standardises with: the moments of the encoders in packages.

    make moments

To be run when the sentences, the encoders or the way of measuring change. All these packages have
to be installed. It is run on a CPU with the threads that there are: their number changes no bit.
"""

import torch
from safetensors.torch import save_file

import freight
from freight.core.weightings import MOMENTS, Moments, Standardised, moments_origin
from freight.encoders import PACKAGED
from freight.encoders.adapters import weights_of


def main() -> None:
    """Measure every layer of each encoder in single precision."""
    tensors: dict[str, torch.Tensor] = {}
    for name in PACKAGED:
        tensors |= named_moments(name)
    save_file(tensors, MOMENTS, moments_origin())
    print(f"{MOMENTS}: {MOMENTS.stat().st_size:,} bytes, {len(PACKAGED)} encoders")


def named_moments(name: str) -> dict[str, torch.Tensor]:
    """The moments of one encoder by their names in the file."""
    encoder = freight.encoder(name, device="cpu")
    measured = Standardised(encoder, tuple(range(encoder.depth + 1))).measure()
    weights = weights_of(encoder)
    return {f"{weights}/{part}": getattr(measured, part) for part in Moments._fields}


if __name__ == "__main__":
    main()
