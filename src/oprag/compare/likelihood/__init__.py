"""The likelihood of a gold answer: a graded measure that sees smaller effects than a score of written answers."""

from oprag.compare.likelihood.gguf import GgufLikelihood
from oprag.compare.likelihood.huggingface import HuggingFaceLikelihood
from oprag.compare.likelihood.model import LikelihoodModel
from oprag.compare.likelihood.prompt import LIKELIHOOD_TEMPLATE, likelihood_prompt

__all__ = ["LIKELIHOOD_TEMPLATE", "GgufLikelihood", "HuggingFaceLikelihood", "LikelihoodModel", "likelihood_prompt"]
