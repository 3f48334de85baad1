"""Named documents, durable, on the volume that all services share.

Whatever users define by a name (computes, datastores, assets, endpoints, schedules), and whatever services must
remember by one, is a document: a few KB, written whole, read by many processes, and never half there.

    Documents[T]     a collection: values of one type, by name          collection.py
    Codec[T]         how a value becomes bytes: version, checksum, seal  codecs.py
    DocumentStore    where the bytes are, and what is atomic there       store.py
    FileStore        a store that is a folder                            file_store.py

A collection is declared, not programmed: `Documents(store, codec, noun="endpoint")`. Nothing above `DocumentStore`
knows paths, so that a bucket can take the place of the folder.
"""
