"""What stands in for a model, so that the examples need no key. It understands nothing: it copies a sentence."""

import re

__all__ = ["reply_to"]

_QUESTION = re.compile(r"[^.?!:\n]+\?")
_SENTENCE_END = re.compile(r"(?<=[.!])\s+|\n\n")


def reply_to(prompt: str, asked: str) -> str:
    """The sentence of a prompt that shares most words with the question; of a conversation, all of its questions.

    Args:
        prompt: All that the model is given.
        asked: The part of it that ends with the question.
    """
    questions = [question.strip() for question in _QUESTION.findall(asked)]
    if not questions:
        return "There is no question."
    if "conversation" in asked:
        # What a model would make one question of.
        return " ".join(questions)
    wanted = _words(questions[-1])
    sentences = [" ".join(sentence.split()) for sentence in _SENTENCE_END.split(prompt) if "?" not in sentence]
    return max(sentences, key=lambda sentence: len(wanted & _words(sentence)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))
