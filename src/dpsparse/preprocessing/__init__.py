"""From raw tables and texts to bounded rows: constants are declared, or learnt privately and paid for."""

from dpsparse.preprocessing.categories import DPCategoryEncoder, HashingEncoder, PublicEncoder
from dpsparse.preprocessing.look import TableLook, dp_look
from dpsparse.preprocessing.numbers import DPStandardizer, PublicScaler
from dpsparse.preprocessing.pipeline import DPPipeline
from dpsparse.preprocessing.table import DPTablePreparer
from dpsparse.preprocessing.text import DPVectorizer

__all__ = [
    "DPCategoryEncoder",
    "DPPipeline",
    "DPStandardizer",
    "DPTablePreparer",
    "DPVectorizer",
    "HashingEncoder",
    "PublicEncoder",
    "PublicScaler",
    "TableLook",
    "dp_look",
]
