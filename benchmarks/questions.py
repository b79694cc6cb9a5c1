"""Questions about the Python language reference in `pydoc_data.topics`, each with the topic of its answer."""

from __future__ import annotations

__all__ = ["QUESTIONS"]

QUESTIONS = {
    "What happens when the condition of an assert statement is false?": "assert",
    "When is the else clause of a while loop executed?": "while",
    "In which order are the context managers of a with statement with several items entered?": "with",
    "What does a finally clause do with an exception that was saved when it executes a return statement?": "try",
    "What is the value of a lambda expression?": "lambda",
    "Which exception is raised when a sequence subscript is out of range?": "subscriptions",
    "How can a name in an outer function be rebound from a nested function?": "nonlocal",
    "What is the difference between the operators is and ==?": "comparisons",
    "When does Python call the __del__ method of an object?": "customization",
    "How does a class become iterable with __getitem__ alone?": "sequence-types",
    "Which values are considered false in a Boolean context?": "truth",
    "What does the continue statement do inside a loop that is nested in another loop?": "continue",
    "Which literals can be written in binary, octal and hexadecimal form?": "integers",
    "What does a bare raise statement do when no exception is active?": "raise",
    "How does an import statement bind a name when there is an as clause?": "import",
    "When are the default values of function parameters evaluated?": "function",
    "Which methods does a context manager have, and what are they given?": "context-managers",
    "What does the unary ~ operator compute?": "unary",
    "How are names resolved in a class block?": "naming",
    "How does a format string refer to positional arguments by number?": "formatstrings",
}
