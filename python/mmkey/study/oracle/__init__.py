"""The oracle: tiny real models with random weights, which say whose KV is whose. Needs the extra ``oracle``.

``model`` is what all of them share, ``qwen``, ``llava`` and ``gemma`` are one model each, ``weights`` makes what they
compute with, ``kv`` compares KV position by position, ``run`` puts the mutations before them, ``decode`` shows what a
false hit does, ``results`` says what was found. Nothing is downloaded: models come from their config classes, and the
processors need no torchvision.
"""
