"""The graph page: a graph as one HTML file to look around in, and as a picture.

`scene.py` says what there is to see (nodes, kernels, regions, and what a click tells of them), `tracer/kernels.py`
which nodes the compiler makes one kernel and how long each takes, `layout.py` where everything lies, `html.py` and
`svg.py` how it is written down. `page.html`, `page.css` and `page.js` are our own and all that a page is made of; it
opens without a network.
"""
