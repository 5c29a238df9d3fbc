"""The logs that can be replayed, one file each."""

from .avazu import AVAZU
from .base import Dataset, Impression, Row
from .movielens import MOVIELENS
from .taobao import TAOBAO

DATASETS: dict[str, Dataset] = {one.name: one for one in (AVAZU, TAOBAO, MOVIELENS)}

__all__ = ["DATASETS", "Dataset", "Impression", "Row"]
