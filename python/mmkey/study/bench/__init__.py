"""What hashing costs a request on this machine, beside what users would pick instead.

``timing`` measures, ``workloads`` draws prompts and pictures, ``peers`` does the same work in the usual way, ``run``
measures it all and gives plain data, ``table`` prints that. Needs the extra ``study``.
"""
