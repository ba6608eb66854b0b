"""The messages of Caffe's files, for protobuf."""
