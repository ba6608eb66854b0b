// SPDX-License-Identifier: Apache-2.0
package org.acl.deepspark.data;

import java.io.Serializable;

/** A parameter of a net as DeepSpark's files have it: a list of these, in the net's order. */
public class Weight implements Serializable {
  private static final long serialVersionUID = 1L;

  /** The values, row by row. */
  public float[] data;

  /** Where they begin in the parameter; 0 in files. */
  public int offset;

  /** The parameter's place in the net. */
  public int layerIndex;
}
