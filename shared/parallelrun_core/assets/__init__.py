"""Assets: names for data, models, environments, components and code, each in versions that never change.

    definition.py   what an asset is, by type: the fields of its document
    kinds/          the types, a module for each
    document.py     from a user's document, and the files beside it, to an asset that is about to be made
    inlining.py     puts what a document refers to into it: files that it names, and code
    catalog.py      the assets below a root folder: versions, labels, archive
    contents.py     the files of assets, kept by the hash of their content
    site.py         the site file: names and places of other people's documents, and what stands for them here
    registering.py  outputs of a job that has completed become assets
    resolving.py    finds what a name stands for: in the site file, then in a catalog

What a document may write for an asset is in `core/names/assets.py`: the seam to those who read documents.

A job never refers to an asset: when it is submitted, what the name stands for is copied into its spec, with the
version. So a job is the same whatever becomes of the asset.
"""
