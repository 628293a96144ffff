"""What the contextual metrics share: how an encoder and a layer are named."""

from freight.clouds import Encoder
from freight.encoding import EMBEDDED, best_layer, encoder
from freight.errors import InvalidInput
from freight.weightings import Idf, Uniform

Layer = int | None
Chosen = str | Encoder
Masses = tuple[Uniform | Idf, Uniform | Idf | None]


def resolve(chosen: Chosen = EMBEDDED, layer: Layer = None) -> tuple[Encoder, tuple[int, ...]]:
    """The encoder and the hidden state to take: 0 is the embeddings, -1 the last one."""
    found = encoder(chosen)
    if layer is None:
        return found, (best_layer(found),)
    place = layer if layer >= 0 else found.depth + 1 + layer
    if not 0 <= place <= found.depth:
        raise InvalidInput(f"layer {layer} is out of range; the encoder has 0..{found.depth}")
    return found, (place,)


def masses(idf: str | None, one_added: bool = False, special: bool = False) -> Masses:
    """The weighting, and that of the reference side where each has its own IDF table."""
    if idf is None:
        return Uniform(special), None
    if idf not in ("ref", "own"):
        raise InvalidInput(f"idf={idf!r}; there is None, 'ref' (one table) and 'own' (one a side)")
    mass = Idf(None, one_added, special)
    return mass, mass if idf == "own" else None


def by_language(lang: str | None, english: float, chinese: float, other: float) -> float:
    """A paper's setting for a target language; English where none is given."""
    return {None: english, "en": english, "zh": chinese}.get(lang, other)
