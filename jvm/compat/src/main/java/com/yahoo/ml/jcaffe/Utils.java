// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import caffe.Caffe.NetParameter;
import caffe.Caffe.SolverParameter;
import cafetiere.jcaffe.ForkText;
import cafetiere.protobuf.Message;
import cafetiere.protobuf.TextFormat;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Reads prototxt. */
public class Utils {
  /** A solver's file. */
  public static SolverParameter GetSolverParam(String file) throws IOException {
    return merge(file, SolverParameter.newBuilder()).build();
  }

  /** A net's file. */
  public static NetParameter GetNetParam(String file) throws IOException {
    return merge(file, NetParameter.newBuilder()).build();
  }

  private static <B extends Message.Builder> B merge(String file, B builder) throws IOException {
    try {
      return ForkText.merge(file, Files.readString(Path.of(file)), builder);
    } catch (TextFormat.ParseException e) {
      throw new IOException(file + ":" + e.getMessage(), e);
    }
  }
}
