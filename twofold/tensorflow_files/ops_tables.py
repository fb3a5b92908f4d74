"""Tables of `tf.lookup`: made and filled when a model is loaded, read and changed when functions run."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold.lookup import KeyValueTensorInitializer, StaticHashTable, TextFileInitializer
from twofold.lookup._tables import Table
from twofold.lookup.experimental import DenseHashTable, MutableHashTable

from .table import Call, op, tensor

__all__: list[str] = []


def _table(value: Any) -> Any:
    if not isinstance(value, Table):
        raise ValueError("what it reads is no table")
    return value


def _name(call: Call) -> str:
    return call.word("shared_name") or call.node.name


@op("HashTableV2", "HashTable", "AnonymousHashTable")
def _hash_table(call: Call) -> list[Any]:
    keys, values = call.dtype("key_dtype"), call.dtype("value_dtype")
    nothing = KeyValueTensorInitializer(tf.zeros([0], keys), tf.zeros([0], values))
    return [StaticHashTable(nothing, tf.zeros([], values), _name(call))]


@op("MutableHashTableV2", "MutableHashTable", "AnonymousMutableHashTable", "MutableHashTableOfTensorsV2",
    "AnonymousMutableHashTableOfTensors")
def _mutable_table(call: Call) -> list[Any]:
    shape = call.attr("value_shape") or tf.TensorShape([])
    values = call.dtype("value_dtype")
    return [MutableHashTable(call.dtype("key_dtype"), values, tf.zeros(shape, values), _name(call))]


@op("MutableDenseHashTableV2", "AnonymousMutableDenseHashTable")
def _dense_table(call: Call, empty_key: Any, deleted_key: Any) -> list[Any]:
    values = call.dtype("value_dtype")
    shape = call.attr("value_shape") or tf.TensorShape([])
    return [DenseHashTable(call.dtype("key_dtype"), values, tf.zeros(shape, values), tensor(empty_key),
                           tensor(deleted_key), None, _name(call))]


@op("LookupTableFindV2", "LookupTableFind")
def _find(call: Call, table_handle: Any, keys: Any, default_value: Any) -> list[Any]:
    return [_table(table_handle)._values_of(tensor(keys), tensor(default_value))]


@op("LookupTableInsertV2")
def _insert(call: Call, table_handle: Any, keys: Any, values: Any) -> list[Any]:
    _table(table_handle).insert(tensor(keys), tensor(values))
    return []


@op("LookupTableRemoveV2")
def _remove(call: Call, table_handle: Any, keys: Any) -> list[Any]:
    _table(table_handle).remove(tensor(keys))
    return []


@op("LookupTableSizeV2")
def _size(call: Call, table_handle: Any) -> list[Any]:
    return [_table(table_handle).size()]


@op("LookupTableExportV2", outputs=("keys", "values"))
def _export(call: Call, table_handle: Any) -> list[Any]:
    return list(_table(table_handle).export())


@op("LookupTableImportV2", "InitializeTableV2", "InitializeTable", "LookupTableImport")
def _import(call: Call, table_handle: Any, keys: Any, values: Any) -> list[Any]:
    contents = _table(table_handle)._contents
    contents.replace(tensor(keys)._array, tensor(values)._array)
    return []


@op("InitializeTableFromTextFileV2", "InitializeTableFromTextFile")
def _import_file(call: Call, table_handle: Any, filename: Any) -> list[Any]:
    table = _table(table_handle)
    size = call.attr("vocab_size", -1)
    lines = TextFileInitializer(tensor(filename), table.key_dtype, call.attr("key_index"), table.value_dtype,
                                call.attr("value_index"), None if size == -1 else size, call.word("delimiter", "\t"),
                                value_index_offset=call.attr("offset", 0))
    table._contents.replace(*lines.pairs())
    return []
