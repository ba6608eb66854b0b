// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools;

import java.io.Serializable;

/** Stands for CaffeOnSpark's class, in keys that tests write. */
public final class Pair implements Serializable {
  private static final long serialVersionUID = 1L;

  final Object first;
  final Object second;

  public Pair(Object first, Object second) {
    this.first = first;
    this.second = second;
  }
}
