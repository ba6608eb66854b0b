"""Cafetiere: reads Caffe's files and trains deep nets inside Spark executors."""

__version__ = "0.1.0"
