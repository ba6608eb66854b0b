// SPDX-License-Identifier: Apache-2.0
import cafetiere.core.Engine;

/** Loads the engine out of the jar and asks it about a small net. */
public final class Alone {
  /** Entry point. */
  public static void main(String[] args) {
    String net = "{\"net\": \"layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: 2"
        + " dim: 3 } } } layer { name: 'ip' type: 'InnerProduct' bottom: 'd' top: 'ip'"
        + " inner_product_param { num_output: 4 } }\", \"phase\": \"TEST\"}";
    System.out.println(Engine.version() + " " + Engine.describe(net).contains("\"parameters\":16"));
  }
}
