"""The study: logical requests run through each strategy, and a judge that says which hits were right.

``logical`` says what a request is, ``judge`` compares two of them, ``simulator`` runs them through the engine's keys,
``scenarios`` lists what is run, ``sources`` and ``pictures`` and ``clips`` make or find the media, ``results``
writes the files and ``table`` prints them. Needs the extra ``study``.
"""
