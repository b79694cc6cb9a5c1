"""What the examples share: a document, an embedder, a model, and a look at what the model read."""
